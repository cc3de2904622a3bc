"""Links between documents: importance of pages, and relevance that propagates along links and site trees."""
