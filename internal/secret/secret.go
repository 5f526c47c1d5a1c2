package secret

import (
	"io/fs"
	"os"
	"strings"

	"github.com/elasticron/elasticron/internal/field"
)

// Given reports whether the props name a place for the secret of a key: keyFile or keyEnv.
func Given(props map[string]string, key string) bool {
	return props[key+"File"] != "" || props[key+"Env"] != ""
}

// Read is what the file of keyFile, without line breaks at its end, or the variable of keyEnv holds; "" when neither is
// given. key itself is refused. A secret that is not there is fs.ErrNotExist.
func Read(props map[string]string, key string) (string, error) {
	file, env := props[key+"File"], props[key+"Env"]
	switch {
	case props[key] != "":
		return "", Refused(key)
	case file != "" && env != "":
		return "", field.Errorf("Props."+key+"File", "is given, and %sEnv too; leave one", key)
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", field.Errorf("Props."+key+"File", "cannot be read: %w", err)
		}
		return filled(key+"File", strings.TrimRight(string(text), "\r\n"))
	case env != "":
		return filled(key+"Env", os.Getenv(env))
	}
	return "", nil
}

func filled(key, value string) (string, error) {
	if value == "" {
		return "", &field.Error{Field: "Props." + key, Problem: "names what is empty or not set; put the secret there", Err: fs.ErrNotExist}
	}
	return value, nil
}

// Refused is the error of a prop that holds a secret itself.
func Refused(key string) error {
	return field.Errorf("Props."+key,
		"is a secret, which all who read the registry would see; put it in a file that %[1]sFile names, or in an environment variable that %[1]sEnv names", key)
}
