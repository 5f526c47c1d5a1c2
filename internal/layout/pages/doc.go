// Package pages reads ledgers with their pages, so that no reader can forget those.
//
//	found, err := pages.Read(ctx, session.Get, nil, nodes...)
//
// The nodes are those of ledgers, as they were read. A ledger without pages costs nothing more; for
// the pages of all others there is one request, and further ones only for what has changed meanwhile:
// on some registries a request of many nodes does not see one instant. The root lists its pages with a
// mark that each of them has too, so that what is torn is noticed, and read again.
//
// # Errors
//
// The error of a ledger stands beside it: ledger.ErrTorn says that it changed too often meanwhile, and
// that another look may help. Any other says that it cannot be read, and of ErrLacks the pages are
// told. The error of Read itself is that of the request.
package pages
