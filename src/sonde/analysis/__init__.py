"""What several runs say together: who knows the same, who ranks templates alike, who is steadier."""
