"""Machines that this process has compiled already, given again to who asks for the same."""
