memory {
	budget	= "5GB" # indented with tabs
}
