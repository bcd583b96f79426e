"""The study of [Suykens2002], section 3.4.2: data, methods, statistics and printed values."""
