"""What takes longer than it needs to, with cause, evidence and a bound."""
