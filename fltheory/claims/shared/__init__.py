"""What several kinds of claim stand on: comparing, drawing, trying settings, known limits."""
