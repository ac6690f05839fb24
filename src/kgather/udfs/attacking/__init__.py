"""What attackers compute with: candidates, their scores, and what is known of people."""
