"""What other programs and libraries call things, and how they read, compute and print them."""
