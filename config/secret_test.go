package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A secret that stands where it does not belong is refused with the place where it
// belongs, and never repeated.
func TestASecretInTheFileIsRefused(t *testing.T) {
	t.Setenv("CONFIG_SECRET_URL", "etcd://jo:hunter2@127.0.0.1:2379/shop")
	t.Setenv("CONFIG_SECRET", "hunter2")
	const inURL = "f.yaml:2:3: registry.url: holds a password, which does not belong in a URL; put it in a file that passwordFile names, or in an environment variable that passwordEnv names"
	const inFile = "a password does not belong in this file; put it in a file that passwordFile names, or in an environment variable that passwordEnv names"
	for block, want := range map[string]string{
		"url: etcd://jo:hunter2@127.0.0.1:2379/shop":                         inURL,
		"url: etcd://:hunter2@127.0.0.1:2379/shop":                           inURL,
		"url: ${CONFIG_SECRET_URL}":                                          inURL,
		"url: etcd://jo:${CONFIG_SECRET}@127.0.0.1:2379/shop":                inURL,
		"url: etcd://127.0.0.1:2379/shop?password=hunter2":                   inURL,
		"url: etcd://127.0.0.1:2379/shop?Password=hunter2":                   inURL,
		"url: etcd://127.0.0.1:2379/shop?user-password=hunter2":              inURL,
		"url: etcd://hunter2@127.0.0.1:2379/shop":                            "f.yaml:2:3: registry.url: holds a user, which does not belong in a URL; give it as username, and the password in a file that passwordFile names or a variable that passwordEnv names",
		"url: etcd://jo:hun%zzter2@127.0.0.1:2379/hunter2":                   "f.yaml:2:3: registry.url: is not a URL; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop",
		"url: jo:hunter2@127.0.0.1:2379/shop":                                "f.yaml:2:3: registry.url: is not a URL; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop",
		"url: etcd://127.0.0.1/shop?a=%hunter2":                              "f.yaml:2:3: registry.url: has settings that cannot be read; write ?name=value&name=value",
		"url: etcd://127.0.0.1/$hunter2":                                     "f.yaml:2:8: registry.url: has a lone $; write ${NAME} for an environment variable, or $$ for a dollar",
		"url: etcd://127.0.0.1/${hunter2":                                    "f.yaml:2:8: registry.url: has a ${ without its }; write ${NAME} or ${NAME:-default}",
		"url: etcd://127.0.0.1/${-hunter2}":                                  "f.yaml:2:8: registry.url: has a ${…} that does not name a variable; write ${NAME} or ${NAME:-default}",
		"url: 'etcd://127.0.0.1:2379/shop'\n  password: hunter2":             "f.yaml:3:3: registry.password: " + inFile,
		"url: 'etcd://127.0.0.1:2379/shop'\n  digest: jo:hunter2":            "f.yaml:3:3: registry.digest: " + inFile,
		"url: 'etcd://127.0.0.1:2379/shop'\n  passWord: [hunter2]":           "f.yaml:3:3: registry.passWord: " + inFile,
		"url: 'etcd://127.0.0.1:2379/shop'\n  passwordEnv: ${CONFIG_SECRET}": "f.yaml:3:16: registry.passwordEnv: names the variable itself, which is read when the registry is opened; write its NAME without ${}",
		"url: 'etcd://127.0.0.1:2379/shop'\n  passwordEnv: hunter2!":         "f.yaml:3:16: registry.passwordEnv: is not the name of an environment variable; write its name, such as REGISTRY_PASSWORD, and put the password in that variable",
		"url: 'etcd://127.0.0.1:2379/shop'\n  tls: {enabled: hunter2}":       "f.yaml:3:18: registry.tls.enabled: is neither true nor false; write one of them",
	} {
		_, err := Parse("f.yaml", []byte("registry:\n  "+block+"\n"))
		require.EqualError(t, err, want, block)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestBadRegistryBlocks(t *testing.T) {
	for block, want := range map[string]string{
		"url: ${CONFIG_NOBODY_SETS}":   "f.yaml:2:8: registry.url: the environment variable CONFIG_NOBODY_SETS is not set; set it, or give a default: ${CONFIG_NOBODY_SETS:-value}",
		"url: ${CONFIG_NOBODY_SETS:-}": "f.yaml:2:3: registry.url: is missing; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop",
		"username: jo":                 "f.yaml:1:1: registry.url: is missing; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop",
		"url: 127.0.0.1:2379":          "f.yaml:2:3: registry.url: is not a URL; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop",
		"url:":                         "f.yaml:2:7: registry.url: has no value; give one or remove the key",
		"url: [etcd://h/shop]":         "f.yaml:2:8: registry.url: is a list, want text",
		"url: etcd://h/shop?username=a\n  username: b":         "f.yaml:2:3: registry.url: the setting username stands in the URL and beside it; leave one",
		"url: etcd://h/s\n  passwordFile: a\n  passwordEnv: B": "f.yaml:1:1: registry: has both passwordFile and passwordEnv; leave one",
		"url: etcd://h/s\n  tls: true":                         "f.yaml:3:8: registry.tls: is one value, want a mapping; write enabled: true on the next line, indented",
		"url: etcd://h/s\n  tls: {}":                           "f.yaml:3:3: registry.tls: is empty; give ca, cert and key, or enabled: true",
		"url: etcd://h/s\n  tls: {cert: a}":                    "f.yaml:3:3: registry.tls: a certificate needs its key; give both cert and key",
		"url: etcd://h/s\n  tls: {ca-file: a}":                 "f.yaml:3:9: registry.tls.ca-file: is not a key here; did you mean ca?",
		"url: etcd://h/s\n  serverLists: a":                    "f.yaml:3:3: registry.serverLists: is not a key here; did you mean url?",
		"url: etcd://h/s\n  namespace: a":                      "f.yaml:3:3: registry.namespace: is not a key here; did you mean the path of url, scheme://host:port/namespace?",
		"url: etcd://h/s\n  usrname: a":                        "f.yaml:3:3: registry.usrname: is not a key here; did you mean username?",
		"url: etcd://h/s\n  retries: a":                        "f.yaml:3:3: registry.retries: is not a key here; did you mean retry.retries?",
		"url: etcd://h/s\n  maxRetries: 3":                     "f.yaml:3:3: registry.maxRetries: is not a key here; did you mean retry.retries?",
		"url: etcd://h/s\n  colour: a":                         "f.yaml:3:3: registry.colour: is not a key here; there are: url, username, passwordFile, passwordEnv, tls, retry",
		"url: etcd://h/s\n  retry: {}":                         "f.yaml:3:3: registry.retry: is empty; give base, max or retries, or remove the block for no retries",
		"url: etcd://h/s\n  retry: 3":                          "f.yaml:3:10: registry.retry: is one value, want a mapping; write base: 1s, max: 3s and retries: 3 on the next lines, indented",
		"url: etcd://h/s\n  retry: {retries: 0}":               "f.yaml:3:20: registry.retry.retries: is 0; remove the block for no retries",
		"url: etcd://h/s\n  retry: {retries: 9999}":            "f.yaml:3:3: registry.retry: 9999 retries; give 1 to 1000",
		"url: etcd://h/s\n  retry: {base: 3s, max: 1s}":        "f.yaml:3:3: registry.retry: max 1s is shorter than base 3s; give at least as much",
		"url: etcd://h/s\n  retry: {base: 1000}":               "f.yaml:3:17: registry.retry.base: has no unit; write for example 1s",
		"url: etcd://h/s\n  colour: a\n  taste: b": "f.yaml:3:3: registry.colour: is not a key here; there are: url, username, passwordFile, passwordEnv, tls, retry\n" +
			"f.yaml:4:3: registry.taste: is not a key here; line 3 tells which there are",
		"url: etcd://h/s\n  retry: {maxRetries: 3}": "f.yaml:3:11: registry.retry.maxRetries: is not a key here; did you mean retries?",
	} {
		_, err := Parse("f.yaml", []byte("registry:\n  "+block+"\n"))
		require.EqualError(t, err, want, block)
	}
}
