"""In-context estimation of latent knowledge: IC-LKE, EIC-LKE and the studies of their design."""
