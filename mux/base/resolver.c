/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "resolver.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "resolver_clients.h"

/*
 * Between the loop and the threads; all under the lock. A thread owns its job
 * while it looks, so nothing else may touch what it fills: the answer.
 */
struct shared {
	pthread_mutex_t lock;
	pthread_cond_t work;	/* something was queued, or stop */
	pthread_cond_t ended;	/* a thread ended */
	struct clients clients;
	struct list done;
	unsigned int idle;	/* threads that wait, were woken or are about to begin */
	unsigned int alive;
	unsigned int refs;	/* threads, and the resolver */
	bool stop;
	int wake;		/* eventfd; the resolver's, -1 after it */
};

struct resolver {
	struct loop *loop;
	struct watch watch;
	struct shared *shared;
	struct list jobs;	/* queued or with a thread */
	unsigned int lookups;
};

struct job {			/* a name */
	struct list node;	/* queue or done; under the lock */
	bool queued;		/* under the lock */
	struct client *client;	/* until it is done */
	struct list member;	/* of the resolver's jobs */
	struct list lookups;	/* whoever waits for it; maybe nobody */
	int family;
	struct answer answer;
	char name[];
};

struct lookup {			/* somebody who asked for it */
	struct list member;
	struct resolver *resolver;
	struct job *job;
	struct timer timer;
	answered_fn answered;
	void *asker;
};

/* --- threads --- */

static void shared_put(struct shared *sh)
{
	bool last;

	pthread_mutex_lock(&sh->lock);
	last = --sh->refs == 0;
	pthread_mutex_unlock(&sh->lock);
	if (!last)
		return;
	while (!list_empty(&sh->done)) {
		struct job *job = list_first(&sh->done, struct job, node);

		list_del(&job->node);
		free(job);
	}
	clients_fini(&sh->clients);
	pthread_mutex_destroy(&sh->lock);
	pthread_cond_destroy(&sh->work);
	pthread_cond_destroy(&sh->ended);
	free(sh);
}

/* --- what is queued; under the lock --- */

static void unqueue(struct job *job)
{
	list_del(&job->node);
	job->queued = false;
}

/* By a thread, which has it from now on. NULL as clients_next(). */
static struct job *take_job(struct shared *sh)
{
	struct client *c = clients_next(&sh->clients);
	struct job *job;

	if (!c)
		return NULL;
	job = list_first(&c->queue, struct job, node);
	unqueue(job);
	client_takes_thread(&sh->clients, c);
	return job;
}

static void give_back(struct shared *sh, struct job *job)
{
	client_returns_thread(&sh->clients, job->client);
	list_add_tail(&sh->done, &job->node);
}

/* --- what a thread does --- */

static void tell_loop(struct shared *sh)
{
	uint64_t one = 1;
	ssize_t wrote;

	if (sh->wake < 0)
		return;
	wrote = write(sh->wake, &one, sizeof(one));
	(void)wrote;	/* cannot fail before 2^64 answers wait */
}

static void call_thread(struct shared *sh);

/* One beyond those that are for everybody ends when there is nothing for it. */
static void *look_on(void *arg)
{
	struct shared *sh = arg;

	pthread_mutex_lock(&sh->lock);
	sh->idle--;
	while (!sh->stop) {
		struct job *job = take_job(sh);

		if (!job && sh->alive > sh->clients.common)
			break;
		if (!job) {
			sh->idle++;
			pthread_cond_wait(&sh->work, &sh->lock);
			sh->idle--;
			continue;
		}
		call_thread(sh);
		pthread_mutex_unlock(&sh->lock);
		answer_find(&job->answer, job->name, job->family);
		pthread_mutex_lock(&sh->lock);
		give_back(sh, job);
		tell_loop(sh);
	}
	sh->alive--;
	pthread_cond_signal(&sh->ended);
	pthread_mutex_unlock(&sh->lock);
	shared_put(sh);
	return NULL;
}

/* Under the lock. Detached, because nobody may have to wait for it. */
static void start_thread(struct shared *sh)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, look_on, sh);
	pthread_attr_destroy(&attr);
	if (err)
		return;
	sh->idle++;
	sh->alive++;
	sh->refs++;
}

/*
 * Under the lock. If a thread may have a job, one comes for it; when it has taken the job it calls
 * for the next one.
 */
static void call_thread(struct shared *sh)
{
	if (!clients_next(&sh->clients))
		return;
	if (sh->idle)
		pthread_cond_signal(&sh->work);
	else if (sh->alive < sh->clients.most)
		start_thread(sh);
}

/* --- the loop's side: jobs --- */

static int enqueue(struct resolver *r, struct job *job, const char *who)
{
	struct shared *sh = r->shared;
	int err = -ENOMEM;

	pthread_mutex_lock(&sh->lock);
	job->client = client_get(&sh->clients, who);
	if (job->client) {
		job->queued = true;
		list_add_tail(&job->client->queue, &job->node);
		call_thread(sh);
		err = sh->alive ? 0 : -EAGAIN;
	}
	if (err == -EAGAIN) {
		unqueue(job);
		client_put(job->client);
	}
	pthread_mutex_unlock(&sh->lock);
	return err;
}

/* Under the lock. */
static bool is_shared(const struct job *job, const char *who)
{
	return !job->queued || !strcmp(job->client->who, who);
}

static struct job *job_find(const struct resolver *r, const char *who,
			    const char *name, int family)
{
	struct job *found = NULL;
	struct list *pos, *tmp;

	pthread_mutex_lock(&r->shared->lock);
	list_each(pos, tmp, &r->jobs) {
		struct job *job = list_entry(pos, struct job, member);

		if (job->family != family || strcmp(job->name, name) != 0 ||
		    !is_shared(job, who))
			continue;
		found = job;
		break;
	}
	pthread_mutex_unlock(&r->shared->lock);
	return found;
}

static int job_new(struct resolver *r, const char *who, const char *name,
		   int family, struct job **new_job)
{
	size_t size = strlen(name) + 1;
	struct job *job = calloc(1, sizeof(*job) + size);
	int err;

	if (!job)
		return -ENOMEM;
	list_init(&job->lookups);
	job->family = family;
	memcpy(job->name, name, size);
	err = enqueue(r, job, who);
	if (err) {
		free(job);
		return err;
	}
	list_add_tail(&r->jobs, &job->member);
	*new_job = job;
	return 0;
}

/* Nobody waits for it any more: forget it, unless a thread has it already. */
static void job_unwanted(struct resolver *r, struct job *job)
{
	struct shared *sh = r->shared;
	bool queued;

	pthread_mutex_lock(&sh->lock);
	queued = job->queued;
	if (queued) {
		unqueue(job);
		client_put(job->client);
	}
	pthread_mutex_unlock(&sh->lock);
	if (!queued)
		return;
	list_del(&job->member);
	free(job);
}

/* --- lookups --- */

static void lookup_free(struct lookup *l)
{
	list_del(&l->member);
	loop_timer_stop(l->resolver->loop, &l->timer);
	l->resolver->lookups--;
	free(l);
}

static void lookup_answer(struct lookup *l, const struct answer *answer)
{
	answered_fn answered = l->answered;
	void *asker = l->asker;

	lookup_free(l);
	answered(asker, answer);
}

void resolver_cancel(struct lookup *l)
{
	struct resolver *r = l->resolver;
	struct job *job = l->job;

	lookup_free(l);
	if (list_empty(&job->lookups))
		job_unwanted(r, job);
}

static void too_late(struct timer *t)
{
	const struct answer answer = { .error = EAI_AGAIN };
	struct lookup *l = container_of(t, struct lookup, timer);
	answered_fn answered = l->answered;
	void *asker = l->asker;

	resolver_cancel(l);
	answered(asker, &answer);
}

static void answers_came(struct watch *w, uint32_t events)
{
	struct resolver *r = container_of(w, struct resolver, watch);
	struct shared *sh = r->shared;
	struct list came;
	uint64_t count;
	ssize_t got;

	(void)events;
	got = read(r->watch.fd, &count, sizeof(count));
	(void)got;	/* it only counts; the list tells */
	list_init(&came);
	pthread_mutex_lock(&sh->lock);
	while (!list_empty(&sh->done))
		list_move_tail(&came, sh->done.next);
	pthread_mutex_unlock(&sh->lock);
	while (!list_empty(&came)) {
		struct job *job = list_first(&came, struct job, node);

		list_del(&job->node);
		list_del(&job->member);
		while (!list_empty(&job->lookups))
			lookup_answer(list_first(&job->lookups, struct lookup,
						 member), &job->answer);
		free(job);
	}
}

bool resolver_waits(const struct lookup *l, unsigned int *own)
{
	const struct client *c = l->job->client;
	struct shared *sh = l->resolver->shared;
	bool waits;

	pthread_mutex_lock(&sh->lock);
	waits = l->job->queued && !client_may_have_thread(&sh->clients, c);
	*own = waits ? c->busy : 0;
	pthread_mutex_unlock(&sh->lock);
	return waits;
}

int resolver_ask_for(struct resolver *r, const char *who, const char *name,
		     int family, answered_fn answered, void *asker,
		     struct lookup **lookup)
{
	struct job *job = job_find(r, who, name, family);
	struct lookup *l;
	int err = 0;

	if (r->lookups >= LOOKUPS_MAX)
		return -EAGAIN;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	if (!job)
		err = job_new(r, who, name, family, &job);
	if (err) {
		free(l);
		return err;
	}
	l->resolver = r;
	l->job = job;
	l->timer.fire = too_late;
	l->answered = answered;
	l->asker = asker;
	list_add_tail(&job->lookups, &l->member);
	r->lookups++;
	err = loop_timer_in(r->loop, &l->timer, LOOKUP_SECONDS * NS_PER_SEC);
	if (err)
		resolver_cancel(l);
	else
		*lookup = l;
	return err;
}

int resolver_ask(struct resolver *r, const char *name, int family,
		 answered_fn answered, void *asker, struct lookup **lookup)
{
	return resolver_ask_for(r, "", name, family, answered, asker, lookup);
}

static struct shared *shared_new(unsigned int threads)
{
	struct shared *sh = calloc(1, sizeof(*sh));
	pthread_condattr_t attr;

	if (!sh)
		return NULL;
	sh->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (sh->wake < 0) {
		free(sh);
		return NULL;
	}
	pthread_mutex_init(&sh->lock, NULL);
	pthread_cond_init(&sh->work, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sh->ended, &attr);
	pthread_condattr_destroy(&attr);
	clients_init(&sh->clients, threads);
	list_init(&sh->done);
	sh->refs = 1;
	return sh;
}

struct resolver *resolver_new(struct loop *loop, unsigned int threads)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	list_init(&r->jobs);
	r->watch.fd = -1;
	r->watch.ready = answers_came;
	r->shared = shared_new(threads);
	if (r->shared &&
	    !loop_watch(loop, &r->watch, r->shared->wake, EPOLLIN))
		return r;
	if (r->shared) {
		close(r->shared->wake);
		shared_put(r->shared);
	}
	free(r);
	return NULL;
}

/* --- who may have how many threads --- */

void resolver_limit_each(struct resolver *r, unsigned int each)
{
	r->shared->clients.each = each;
}

void resolver_grant_each(struct resolver *r, unsigned int few,
			 unsigned int most)
{
	struct shared *sh = r->shared;

	pthread_mutex_lock(&sh->lock);
	clients_grant_each(&sh->clients, few, most);
	call_thread(sh);
	pthread_mutex_unlock(&sh->lock);
}

int resolver_reserve(struct resolver *r, const char *who)
{
	struct shared *sh = r->shared;
	struct client *c;

	pthread_mutex_lock(&sh->lock);
	c = client_get(&sh->clients, who);
	if (c)
		client_reserve(&sh->clients, c);
	call_thread(sh);
	pthread_mutex_unlock(&sh->lock);
	return c ? 0 : -ENOMEM;
}

/* It is there, since something is reserved for it. What that was may be somebody else's now. */
void resolver_release(struct resolver *r, const char *who)
{
	struct shared *sh = r->shared;

	pthread_mutex_lock(&sh->lock);
	client_release(&sh->clients, client_get(&sh->clients, who));
	call_thread(sh);
	pthread_mutex_unlock(&sh->lock);
}

/* --- the end --- */

/* Under the lock. */
static void await_threads(struct shared *sh)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += RESOLVER_END_MS * NS_PER_MS;
	until.tv_sec += until.tv_nsec / NS_PER_SEC;
	until.tv_nsec %= NS_PER_SEC;
	while (sh->alive && !err)
		err = pthread_cond_timedwait(&sh->ended, &sh->lock, &until);
}

void resolver_free(struct resolver *r)
{
	struct shared *sh;
	int wake;

	if (!r)
		return;
	sh = r->shared;
	loop_unwatch(r->loop, &r->watch);
	pthread_mutex_lock(&sh->lock);
	wake = sh->wake;
	sh->wake = -1;
	sh->stop = true;
	pthread_cond_broadcast(&sh->work);
	await_threads(sh);
	pthread_mutex_unlock(&sh->lock);
	close(wake);
	shared_put(sh);
	free(r);
}

const char *resolver_error_text(int error)
{
	if (error == EAI_AGAIN)
		return "its name cannot be looked up now";
	return gai_strerror(error);
}
