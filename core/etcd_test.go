package core_test

import "testing"

func onEtcd(t *testing.T, test func(b *bed)) { t.Skip("next") }
