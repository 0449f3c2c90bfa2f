package yarn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"taxon/internal/retry"
)

// Client calls a resource manager.
type Client struct {
	// URLs are addresses such as http://host:8088. The first that answers as the active manager is
	// used.
	URLs []string
	// User is the caller, if there is no Kerberos.
	User string
	// Negotiate adds a Kerberos ticket to a request. It is nil without Kerberos.
	Negotiate func(*http.Request) error
	// HTTP makes the calls. If it is nil, a client with callTimeout is used.
	HTTP *http.Client
}

// callTimeout bounds a call. A launch uploads the service's master, which takes the resource
// manager some seconds.
const callTimeout = 60 * time.Second

// dialTimeout bounds the time for connecting. Connecting fails if there is no server at an address.
const dialTimeout = 10 * time.Second

// maxAnswer bounds the size of an answer, in bytes.
const maxAnswer = 64 << 20

var (
	// ErrNoService reports that there is no service of a name.
	ErrNoService = errors.New("no such service")
	// ErrClosed reports that the resource manager offers no REST API for services.
	ErrClosed = errors.New("the resource manager's service API is closed")
	// ErrUnreachable reports that no resource manager answers.
	ErrUnreachable = errors.New("no resource manager answers")
)

// Error is a refusal by a resource manager.
type Error struct {
	Status  int
	Message string
	// byService reports that the service API answered and not the server around it. explained
	// reports that the answer gave a reason.
	byService, explained bool
}

func (e *Error) Error() string { return e.Message }

// Launch starts a service.
func (c *Client) Launch(ctx context.Context, s *Service) error {
	return c.service(ctx, http.MethodPost, "", s, nil)
}

// Flex changes the number of a component's containers.
func (c *Client) Flex(ctx context.Context, name, component string, n int) error {
	doc := map[string]int{"number_of_containers": n}
	return c.service(ctx, http.MethodPut, "/"+url.PathEscape(name)+"/components/"+url.PathEscape(component), doc, nil)
}

// Status describes a service. The error is ErrNoService if there is none.
func (c *Client) Status(ctx context.Context, name string) (*Service, error) {
	var s Service
	err := c.service(ctx, http.MethodGet, "/"+url.PathEscape(name), nil, &s)
	return &s, err
}

// Destroy ends a service and removes its definition. The error is ErrNoService if there is none.
func (c *Client) Destroy(ctx context.Context, name string) error {
	err := c.service(ctx, http.MethodPut, "/"+url.PathEscape(name), map[string]string{"state": "STOPPED"}, nil)
	var refused *Error
	if err != nil && !errors.As(err, &refused) {
		// A service that does not run cannot be stopped, only removed.
		return err
	}
	return c.service(ctx, http.MethodDelete, "/"+url.PathEscape(name), nil, nil)
}

// service calls the API of services.
func (c *Client) service(ctx context.Context, method, path string, in, out any) error {
	err := c.call(ctx, method, "/app/v1/services"+path, in, out)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		if e.byService {
			// A closed API has no such page, and its answer has another form.
			return fmt.Errorf("%w: %s", ErrNoService, e.Message)
		}
		return fmt.Errorf("%w: ask its admin for yarn.webapp.api-service.enable=true in yarn-site.xml", ErrClosed)
	}
	return err
}

// call sends a request to the active resource manager.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	err = c.callAny(ctx, method, path, body, in != nil, out)
	for tries := 1; tries < settleTries && method == http.MethodGet && starting(err); tries++ {
		if err := retry.For(ctx, settlePause); err != nil {
			return err
		}
		err = c.callAny(ctx, method, path, body, in != nil, out)
	}
	return err
}

// A resource manager that has just started answers some calls with a bare 500 for a second or two.
const (
	settleTries = 5
	settlePause = time.Second
)

// starting reports whether err is such an answer, which gives no reason.
func starting(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status >= 500 && !e.explained
}

// callAny tries the resource managers one after the other.
func (c *Client) callAny(ctx context.Context, method, path string, body []byte, send bool, out any) error {
	var last error
	for _, root := range c.URLs {
		err := c.callOne(ctx, method, strings.TrimRight(root, "/")+path, body, send, out)
		if err == nil || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		var e *Error
		if errors.As(err, &e) {
			return err
		}
		last = err
	}
	return last
}

func (c *Client) callOne(ctx context.Context, method, at string, body []byte, send bool, out any) error {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	var content io.Reader
	if send {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, at, content)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if send {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Negotiate != nil {
		if err := c.Negotiate(req); err != nil {
			return err
		}
	} else if c.User != "" {
		q := req.URL.Query()
		q.Set("user.name", c.User)
		req.URL.RawQuery = q.Encode()
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return unreachable(at, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return unreachable(at, err)
	}
	return answer(at, resp, data, out)
}

func (c *Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DisableKeepAlives: true}}
}

// unreachable returns an error that names the address that does not answer, without repeating what
// is known.
func unreachable(at string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	host := at
	if p, e := url.Parse(at); e == nil {
		host = p.Host
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return fmt.Errorf("%w at %s (%w): check host and port (yarn.resourcemanager.webapp.address) and that it runs",
		ErrUnreachable, host, err)
}

// answer decodes the answer.
func answer(at string, resp *http.Response, data []byte, out any) error {
	isJSON := strings.Contains(resp.Header.Get("Content-Type"), "json") || json.Valid(data) && len(data) > 0
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		e := reason(data, resp)
		e.Message = "the resource manager refuses this user: " + e.Message
		return e
	case resp.StatusCode >= 300 && (isJSON || resp.StatusCode == http.StatusNotFound && isHadoop(resp)):
		return reason(data, resp)
	case resp.StatusCode >= 300 || !isJSON && out != nil:
		return fmt.Errorf("%w at %s: what is there speaks HTTP and is no resource manager (%s)", ErrUnreachable,
			resp.Request.URL.Host, resp.Status)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("answer of %s: %w", at, err)
	}
	return nil
}

// isHadoop reports whether an answer is from Hadoop's web servers, which set a certain header on
// every page.
func isHadoop(resp *http.Response) bool { return resp.Header.Get("X-Frame-Options") != "" }

// reason finds the line with the reason, in the form of the service API or of Hadoop's other pages.
func reason(data []byte, resp *http.Response) *Error {
	var doc struct {
		Diagnostics     string
		RemoteException struct{ Message string }
	}
	_ = json.Unmarshal(data, &doc) // without JSON only the status is known
	e := &Error{Status: resp.StatusCode, Message: resp.Status, byService: doc.Diagnostics != ""}
	for _, m := range []string{doc.RemoteException.Message, doc.Diagnostics} {
		if line, _, _ := strings.Cut(strings.TrimSpace(m), "\n"); line != "" {
			e.Message, e.explained = line, true
		}
	}
	return e
}
