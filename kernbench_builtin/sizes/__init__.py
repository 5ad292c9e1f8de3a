"""Sizes and dtypes of benches that their arrays say."""
