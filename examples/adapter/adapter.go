package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

func init() { registry.Register("sqlite", openURL) }

// openURL serves sqlite:///namespace?file=path.
func openURL(ctx context.Context, u *url.URL) (registry.Registry, error) {
	file := u.Query().Get("file")
	if u.Host != "" || file == "" || len(u.Query()) != 1 || u.Fragment != "" {
		return nil, fmt.Errorf("sqlite: %w: want sqlite:///namespace?file=/path/of.db and nothing else", registry.ErrInvalid)
	}
	cfg := polled.Config{Name: "sqlite", Namespace: strings.Trim(u.Path, "/"), Data: file}
	if err := cfg.Validate(); err != nil {
		return nil, err // before the file is made
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w: %w", registry.ErrInvalid, err)
	}
	store, err := NewStore(ctx, db)
	if err != nil {
		return nil, err
	}
	return polled.New(store, cfg)
}
