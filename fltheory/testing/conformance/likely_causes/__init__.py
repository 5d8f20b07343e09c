"""What usually goes wrong: each paper's pseudo-code in plain NumPy, with one slip at a time.

Without a slip it is a second implementation beside the package's class. With one it is played
on what an implementation was given; the slip that reproduces its models is the likely cause.
"""
