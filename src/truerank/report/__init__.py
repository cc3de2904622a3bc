"""What people look at: charts, pages."""
