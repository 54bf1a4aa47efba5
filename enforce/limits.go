package enforce

// Limits finds the limiters that the rules of a door name.
type Limits interface {
	// Limiter returns a budget's limiter and the index of a class in it; false
	// where there is no such budget or class.
	Limiter(budget, class string) (*Limiter, int, bool)
}
