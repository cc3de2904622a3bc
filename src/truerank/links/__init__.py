"""Links between documents: importance of pages, and relevance propagation along links and site trees."""
