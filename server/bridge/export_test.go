package bridge

// Sentences is for tests.
var Sentences = sentences
