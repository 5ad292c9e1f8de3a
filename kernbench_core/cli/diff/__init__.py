"""`kernbench diff`: two runs side by side, saved ones or one bench run now under two configurations."""
