"""SCAFFOLD (Karimireddy et al.): its statements on finitely many rounds."""
