"""What everything else stands on: errors, array namespaces, memory, randomness. No learning."""
