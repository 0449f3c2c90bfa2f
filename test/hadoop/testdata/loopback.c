/* Preloaded into YARN's daemons and their containers: who binds to every address is bound
 * to loopback. Hadoop's shuffle service and MapReduce's masters have no setting for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*bind_call)(int, const struct sockaddr *, socklen_t);

int bind(int fd, const struct sockaddr *where, socklen_t len) {
	bind_call next = (bind_call)dlsym(RTLD_NEXT, "bind");
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	if (where && where->sa_family == AF_INET && len >= sizeof v4) {
		memcpy(&v4, where, sizeof v4);
		if (v4.sin_addr.s_addr == htonl(INADDR_ANY))
			v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return next(fd, (struct sockaddr *)&v4, sizeof v4);
	}
	if (where && where->sa_family == AF_INET6 && len >= sizeof v6) {
		memcpy(&v6, where, sizeof v6);
		if (IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)) { /* ::ffff:127.0.0.1, so that IPv4 callers get through */
			v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
			v6.sin6_addr.s6_addr[12] = 127;
			v6.sin6_addr.s6_addr[15] = 1;
		}
		return next(fd, (struct sockaddr *)&v6, sizeof v6);
	}
	return next(fd, where, len);
}
