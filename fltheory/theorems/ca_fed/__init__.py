"""CA-Fed (Rodio et al.): its statements, as printed and as derived."""
