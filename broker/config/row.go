package config

type layers struct{}
