"""The laws: what an implementation must do, and on which cases that is tried."""
