// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pieces of source text
/**
 * Small faults that some test must notice: in how jobs move, in money, claims, leases, idempotency and signatures. Each is written
 * into a copy of the sources, alone, and the tests named with it must fail then. `npm run test:mutations` does that for all.
 */
export interface Mutation {
  readonly area: 'moves of a job' | 'money' | 'claims' | 'leases' | 'idempotency' | 'signatures'
  /** What the fault would mean to somebody. */
  readonly fault: string
  /** A file, or a folder in which every occurrence is changed. */
  readonly in: string
  readonly find: string
  readonly replace: string
  readonly tests: readonly string[]
}

const TRANSITIONS = 'src/domain/jobs/transitions.ts'
const END_OF_RUN = 'src/domain/jobs/run/run-moves.ts'
const CHARGE = 'src/domain/jobs/end/charge.ts'
const KEY = 'src/domain/idempotency/idempotency-key.ts'
const SIGNED_URL = 'src/domain/assets/signed-url.ts'
const CHECK_LINKS = 'src/domain/moderation/check-links.ts'
const STORES = 'src/adapters/store'
const CLAIM = 'src/adapters/store/sqlite/operations/jobs/claim-job.ts'

const ends = ['src/domain/jobs/run/end-of-run.test.ts']
const jobStore = ['test/adapters/store/sqlite/job-store.test.ts']
const ledger = ['test/adapters/store/sqlite/account-contracts.test.ts']
const charges = ['src/domain/jobs/end/charge.test.ts']
const prices = ['src/domain/credits/prices.test.ts']
const leases = ['src/domain/jobs/claim/lease-keeper.test.ts']
const takenBack = ['test/domain/jobs/leases.test.ts']
const moves = ['src/domain/jobs/transitions.test.ts']
const calls = ['test/adapters/store/sqlite/call-store.test.ts']
const keys = ['src/domain/idempotency/idempotency-key.test.ts']
const addresses = ['test/domain/assets/signed-url.test.ts']
const checkLinks = ['src/domain/moderation/check-links.test.ts']
const tokens = ['src/domain/models/partner/run-tokens.test.ts']
const webhooks = ['src/domain/webhooks/job-hooks.test.ts']
const receipts = ['src/domain/workers/output-receipts.test.ts']
const cursors = ['src/surfaces/kit/cursor.test.ts']

export const MUTATIONS: readonly Mutation[] = [
  {
    area: 'moves of a job',
    fault: 'a running job cannot succeed',
    in: TRANSITIONS,
    find: "running: ['succeeded', 'failed',",
    replace: "running: ['failed',",
    tests: moves,
  },
  {
    area: 'moves of a job',
    fault: 'a run that finishes before its cancel takes hold cannot succeed',
    in: TRANSITIONS,
    find: "canceling: ['canceled', 'succeeded',",
    replace: "canceling: ['canceled',",
    tests: moves,
  },
  {
    area: 'moves of a job',
    fault: 'a job that waits cannot be cancelled',
    in: TRANSITIONS,
    find: "queued: ['running', 'succeeded', 'canceled',",
    replace: "queued: ['running', 'succeeded',",
    tests: moves,
  },
  {
    area: 'moves of a job',
    fault: 'a job that has succeeded may still fail',
    in: TRANSITIONS,
    find: 'succeeded: [],',
    replace: "succeeded: ['failed'],",
    tests: moves,
  },
  {
    area: 'moves of a job',
    fault: 'a job that is being cancelled counts as held by nobody',
    in: TRANSITIONS,
    find: "return status === 'running' || status === 'canceling'",
    replace: "return status === 'running'",
    tests: moves,
  },
  {
    area: 'moves of a job',
    fault: 'an output that could not be kept brings one attempt more than allowed',
    in: END_OF_RUN,
    find: 'return stop.mayPass && attempt < maxAttempts',
    replace: 'return stop.mayPass && attempt <= maxAttempts',
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'a lost engine brings one attempt more than allowed',
    in: END_OF_RUN,
    find: "if (attempt < maxAttempts) return { verdict: 'requeue' }",
    replace: "if (attempt <= maxAttempts) return { verdict: 'requeue' }",
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'an engine that was lost before the run began costs the job an attempt',
    in: END_OF_RUN,
    find: 'if (loss.isBlameless || loss.isUntouched)',
    replace: 'if (loss.isBlameless)',
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'a job that another run took down costs it an attempt',
    in: END_OF_RUN,
    find: 'if (loss.isBlameless || loss.isUntouched)',
    replace: 'if (loss.isUntouched)',
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'a failed job that was stopped runs once more for free',
    in: END_OF_RUN,
    find: "if (facts.again === 'free' && stop === null)",
    replace: "if (facts.again === 'free')",
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'a run that finished before the interrupt took hold is thrown away',
    in: END_OF_RUN,
    find: "if (outcome?.kind === 'succeeded')",
    replace: "if (outcome?.kind === 'succeeded' && stop === null)",
    tests: ends,
  },
  {
    area: 'moves of a job',
    fault: 'a job that was cancelled ends as failed',
    in: END_OF_RUN,
    find: "status: 'canceled'",
    replace: "status: 'failed'",
    tests: ends,
  },

  {
    area: 'money',
    fault: 'a short job costs less than the minimum',
    in: CHARGE,
    find: 'return Math.max(minimumMicros, forTime)',
    replace: 'return forTime',
    tests: charges,
  },
  {
    area: 'money',
    fault: 'a job that failed on our side is charged',
    in: CHARGE,
    find: 'return isOwn ? forTime : 0',
    replace: 'return forTime',
    tests: charges,
  },
  {
    area: 'money',
    fault: 'a job that took longer than it may is free',
    in: CHARGE,
    find: "  'timeout',\n",
    replace: '',
    tests: charges,
  },
  {
    area: 'money',
    fault: 'a job that waits for its next attempt is charged for the one that was lost',
    in: CHARGE,
    find: 'if (!isHeld(end.from) || end.startedAt === null) return 0',
    replace: 'if (end.startedAt === null) return 0',
    tests: charges,
  },
  {
    area: 'money',
    fault: 'parts of a micro-dollar are lost',
    in: 'src/domain/credits/prices.ts',
    find: 'Math.ceil((restMs * perSecondMicros)',
    replace: 'Math.floor((restMs * perSecondMicros)',
    tests: prices,
  },
  {
    area: 'money',
    fault: 'a price beyond what can be counted exactly is charged',
    in: 'src/domain/credits/prices.ts',
    find: 'return Math.min(MAX_MICROS, forSeconds +',
    replace: 'return Math.max(0, forSeconds +',
    tests: prices,
  },
  {
    area: 'money',
    fault: 'more credit is taken back than the account has',
    in: STORES,
    find: 'micros < 0 ? available + micros >= floor',
    replace: 'micros < 0 ? true',
    tests: ledger,
  },
  {
    area: 'money',
    fault: 'an account may have more credit than can be counted exactly',
    in: STORES,
    find: 'available + held + micros <= MAX_MICROS',
    replace: 'true',
    tests: ledger,
  },
  {
    area: 'money',
    fault: 'more is refunded than was charged',
    in: STORES,
    find: 'if (back > charged)',
    replace: 'if (back > charged + 1)',
    tests: ledger,
  },
  {
    area: 'money',
    fault: 'the rest of a bill is the whole of it',
    in: 'src/domain/credits/charges.ts',
    find: 'charged: total.charged - told.charged',
    replace: 'charged: total.charged',
    tests: ['test/surfaces/console/usage.test.ts'],
  },

  {
    area: 'claims',
    fault: 'an account runs more jobs at once than it may',
    in: STORES,
    find: 'WHERE queued > 0 AND running < max_running AND id NOT IN',
    replace: 'WHERE queued > 0 AND id NOT IN',
    tests: jobStore,
  },
  {
    area: 'claims',
    fault: 'an account with many jobs is served before one that has none running',
    in: STORES,
    find: 'ORDER BY running, served, head LIMIT 1)',
    replace: 'ORDER BY head LIMIT 1)',
    tests: jobStore,
  },
  {
    area: 'claims',
    fault: 'a worker takes jobs of another pool',
    in: CLAIM,
    find: 'account_id = account.id AND pool = ',
    replace: "account_id = account.id AND '' <> ",
    tests: jobStore,
  },
  {
    area: 'claims',
    fault: 'a job whose time is over is run',
    in: CLAIM,
    find: 'AND coalesce(queue_until, expires_at) > ',
    replace: 'AND 1e18 > ',
    tests: jobStore,
  },
  {
    area: 'claims',
    fault: 'priority means nothing',
    in: STORES,
    find: 'ORDER BY priority DESC, seq LIMIT 1) AS head',
    replace: 'ORDER BY seq LIMIT 1) AS head',
    tests: jobStore,
  },
  {
    area: 'claims',
    fault: 'an account runs more jobs at once than it may where engines serve lanes',
    in: STORES,
    find: 'account.id = head.account_id AND account.running < account.max_running',
    replace: 'account.id = head.account_id',
    tests: jobStore,
  },

  {
    area: 'leases',
    fault: 'a run goes on though its lease is lost',
    in: 'src/domain/jobs/claim/lease-keeper.ts',
    find: 'run.lose()\n        continue',
    replace: 'continue',
    tests: leases,
  },
  {
    area: 'leases',
    fault: 'a cancel that only a renewal tells of is not heard',
    in: 'src/domain/jobs/claim/lease-keeper.ts',
    find: "if (status === 'canceling') run.cancel()",
    replace: '',
    tests: leases,
  },
  {
    area: 'leases',
    fault: 'an outage of the store ends every run at once',
    in: 'src/domain/jobs/claim/lease-keeper.ts',
    find: '(isAway ? this.#options.outageGraceMs : 0)',
    replace: '0',
    tests: leases,
  },
  {
    area: 'leases',
    fault: 'a look for lapsed leases takes every job from its worker',
    in: 'src/domain/jobs/sweeps',
    find: 'store.reap({ now, maxAttempts',
    replace: 'store.reap({ now, lapsedBefore: new Date(8_640_000_000_000_000), maxAttempts',
    tests: takenBack,
  },
  {
    area: 'leases',
    fault: 'a worker renews a lease that another one holds',
    in: 'src/adapters/store/stores/jobs/leases.ts',
    find: 'lease_id = held_by AND status',
    replace: 'status',
    tests: jobStore,
  },
  {
    area: 'leases',
    fault: 'a worker writes what it made under a lease that it has lost',
    in: 'src/adapters/store/stores/jobs/commit-run.ts',
    find: 'lease_id = held_by AND status',
    replace: 'status',
    tests: jobStore,
  },
  {
    area: 'leases',
    fault: 'a job whose workers die is tried once more than allowed',
    in: STORES,
    find: 'maxAttempts)',
    replace: 'maxAttempts + 1)',
    tests: jobStore,
  },
  {
    area: 'leases',
    fault: 'a job that was given back has spent its attempt',
    in: STORES,
    find: 'attempt = attempt - ',
    replace: 'attempt = attempt - 0 * ',
    tests: jobStore,
  },

  {
    area: 'idempotency',
    fault: 'a key may be used again after an hour',
    in: KEY,
    find: '24 * 60 * 60 * 1000',
    replace: '60 * 60 * 1000',
    tests: keys,
  },
  {
    area: 'idempotency',
    fault: 'of two keys the first one counts',
    in: KEY,
    find: 'values.length > 1',
    replace: 'values.length > 2',
    tests: keys,
  },
  {
    area: 'idempotency',
    fault: 'a key may be longer than the contract says',
    in: KEY,
    find: 'KEY_MAX_LENGTH = 255',
    replace: 'KEY_MAX_LENGTH = 256',
    tests: keys,
  },
  {
    area: 'idempotency',
    fault: 'a refused repetition does not tell which job the key made',
    in: KEY,
    find: '...(jobId !== null && { jobId }),',
    replace: '',
    tests: keys,
  },
  {
    area: 'idempotency',
    fault: 'a key that was used makes a second job',
    in: 'src/adapters/store/stores/jobs/submit-jobs.ts',
    find: "if (holder !== null) return { outcome: 'key_reused', holder }",
    replace: '',
    tests: jobStore,
  },
  {
    area: 'idempotency',
    fault: 'a key answers another request with the result of the first',
    in: STORES,
    find: " !== fingerprint) return { use: 'other_request' }",
    replace: " === null) return { use: 'other_request' }",
    tests: calls,
  },

  {
    area: 'signatures',
    fault: 'an address that a hook got never expires',
    in: CHECK_LINKS,
    find: 'if (!(clock.now() < expiresAt)) throw invalidLink()',
    replace: '',
    tests: checkLinks,
  },
  {
    area: 'signatures',
    fault: 'an address of a hook with any signature names any bytes',
    in: CHECK_LINKS,
    find: 'if (!secrets.some(',
    replace: 'if (secrets.length === 0 && !secrets.some(',
    tests: checkLinks,
  },
  {
    area: 'signatures',
    fault: 'an address with any signature is accepted',
    in: SIGNED_URL,
    find: 'timingSafeEqual(Buffer.from(signature), Buffer.from(expected)) && ',
    replace: '',
    tests: addresses,
  },
  {
    area: 'signatures',
    fault: 'an address never expires',
    in: SIGNED_URL,
    find: 'if (!isSigned || !(clock.now() < expiresAt))',
    replace: 'if (!isSigned)',
    tests: addresses,
  },
  {
    area: 'signatures',
    fault: 'an address may be changed to name another account',
    in: SIGNED_URL,
    find: '.update(PURPOSE).update(address)',
    replace: ".update(PURPOSE).update(address.replace(/account=[^&]*/, ''))",
    tests: addresses,
  },
  {
    area: 'signatures',
    fault: 'a message is signed without its id',
    in: 'lib/standard-webhooks.ts',
    find: '${id}.${seconds}.${body}',
    replace: '${seconds}.${body}',
    tests: ['lib/standard-webhooks.test.ts'],
  },
  {
    area: 'signatures',
    fault: 'the former secret of a webhook signs for ever',
    in: 'src/domain/webhooks',
    find: ' && previousUntil > now',
    replace: '',
    tests: webhooks,
  },
  {
    area: 'signatures',
    fault: 'a token of a run never expires',
    in: 'src/domain/models/partner',
    find: "return clock.now().getTime() < claims['exp'] ? claims : null",
    replace: 'return claims',
    tests: tokens,
  },
  {
    area: 'signatures',
    fault: 'what was signed for one purpose counts for another',
    in: 'src/domain/models/partner',
    find: '`atelier ${purpose}\\n${id}\\n${body}`',
    replace: '`atelier\\n${id}\\n${body}`',
    tests: tokens,
  },
  {
    area: 'signatures',
    fault: 'a worker makes bytes of another lease an output of its job',
    in: 'src/domain/workers',
    find: '`${leaseId}\\n${hash}\\n${sizeBytes}`',
    replace: '`${hash}\\n${sizeBytes}`',
    tests: receipts,
  },
  {
    area: 'signatures',
    fault: 'a cursor has several spellings',
    in: 'src/surfaces/kit/cursor.ts',
    find: " || bytes.toString('base64url') !== cursor",
    replace: '',
    tests: cursors,
  },
]
