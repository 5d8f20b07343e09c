"""What is ready to be pasted into a paper."""
