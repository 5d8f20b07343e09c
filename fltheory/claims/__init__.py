"""The kinds of claim: what each asserts."""
