/**
 * Settings of releases. A start accepts them wherever they stand, and says in one warning what happens instead. Those that
 * became part of another setting still count, unless that setting is given itself in the same source or in one that wins over it.
 */
import { readWordOr } from '../readers/read-choice.ts'
import {
  DAY,
  GIB,
  MIB,
  ROUTER_LIMITS,
  readBytes,
  readCount,
  readDurationMs,
  readRecycleAge,
  readRecycleJobs,
  readRecycleMemory,
} from '../readers/read-quantity.ts'
import type { ConfigWarning } from './setting.ts'
import type { SettingName } from './settings.ts'

type Read = (text: string) => unknown

interface Folded {
  readonly into: SettingName
  /** The member of the object that the setting holds now; null: the text is an item of its list. */
  readonly member: string | null
  /** Throws unless the text meant something where it stood; left out: the setting that holds it now checks its members itself. */
  readonly check?: Read
}

/** A limit that is fixed now. */
interface Bound {
  readonly now: string
  /** Whether the limit that was asked for is lower than the one there is. */
  readonly isStricter: (asked: string) => boolean
}

const inJwt = (member: string): Folded => ({ into: 'jwt', member })
const inRecycleAfter = (read: Read): Folded => ({
  into: 'recycleAfter',
  member: null,
  check: readWordOr('none', null, read),
})
const inRouterLimits = (member: keyof typeof ROUTER_LIMITS): Folded => ({
  into: 'routerLimits',
  member,
  check: readWordOr('none', null, ROUTER_LIMITS[member]),
})

const ANY = { min: 0, max: Number.MAX_SAFE_INTEGER }
const [readNumber, readSize, readTime] = [readCount(ANY), readBytes(ANY), readDurationMs(ANY)]

function bound(now: string, read: (text: string) => number, limit: number): Bound {
  function isStricter(asked: string): boolean {
    try {
      return read(asked) < limit
    } catch {
      // No quantity, such as `none`, which was no limit at all.
      return false
    }
  }
  return { now, isStricter }
}

/** What happens now, or the setting that took it over. */
export const RETIRED: Readonly<Record<string, string | Bound | Folded>> = {
  maxBodies: bound(
    'the bodies of all requests together may use 256 MiB, or maxBody if that is more',
    readSize,
    256 * MIB,
  ),
  maxBodiesPerCaller: bound(
    'the bodies of one account may use 128 MiB, or maxBody if that is more',
    readSize,
    128 * MIB,
  ),
  maxStreams: bound(
    '10,000 streams may be open at once, and where accounts have tiers, as many as their tier says',
    readNumber,
    10_000,
  ),
  synchronous: 'SQLite always writes so that what was acknowledged survives a power cut',
  expiredGrace: bound('an expired job stays readable for an hour', readTime, 3_600_000),
  cancelGrace: bound('a canceled job has 10 s to stop', readTime, 10_000),
  urlLifetime: bound('a signed content address is valid for 24 h', readTime, DAY),
  jwtKeys: inJwt('keys'),
  jwtIssuer: inJwt('issuer'),
  jwtAudience: inJwt('audience'),
  jwtAccountClaim: inJwt('accountClaim'),
  jwtScopesClaim: inJwt('scopesClaim'),
  jwtAlgorithms: inJwt('algorithms'),
  jwtClockSkew: bound('the clock of an issuer may be 30 s off', readTime, 30_000),
  stagingLabel: 'the label of staging addresses is stg',
  maxImagePixels: bound('a picture may have 268,435,456 pixels (16384 × 16384)', readNumber, 268_435_456),
  maxOvertakes: bound('a job is overtaken by at most 1,024 later ones whose weights are loaded', readNumber, 1024),
  engineLostAfter: bound('a ComfyUI server that does not answer for 15 s is lost', readTime, 15_000),
  engineIdleAfter: bound('a job that waits 30 s on a server that runs nothing goes to another one', readTime, 30_000),
  engineQueueAfter: bound(
    'a job that waits 10 min behind the same prompt of a server goes to another one',
    readTime,
    600_000,
  ),
  poolIdle: bound('a deployment without an idle time of its own sleeps after 5 min without a job', readTime, 300_000),
  recycleJobs: inRecycleAfter(readRecycleJobs),
  recycleMemory: inRecycleAfter(readRecycleMemory),
  recycleAge: inRecycleAfter(readRecycleAge),
  routerMaxBody: bound('the largest input of a model is 100 MiB', readSize, 100 * MIB),
  routerMaxResult: bound('the largest result of a provider is 1 GiB', readSize, GIB),
  routerMaxReplay: bound('results of up to 256 MiB are replayed', readSize, 256 * MIB),
  routerMaxCalls: inRouterLimits('maxCalls'),
  routerSpendCeiling: inRouterLimits('spendCeiling'),
  routerRate: inRouterLimits('rate'),
  routerMaxWaiting: bound('an account may have 1,000 queued model calls', readNumber, 1000),
  routerMaxWait: bound('a queued model call waits for an hour at most', readTime, 3_600_000),
  creditsPerUsd: 'one US dollar is 211 credits',
  logRequests: 'logLevel = debug writes a line for each request',
}

/** The retired names that became part of a setting. */
export function foldedInto(name: SettingName): readonly (readonly [string, Folded])[] {
  return Object.entries(RETIRED).flatMap(([old, now]) =>
    typeof now === 'object' && 'into' in now && now.into === name ? [[old, now] as const] : [],
  )
}

/** The setting that a retired one became part of; null: none. */
export function successorOf(name: string): SettingName | null {
  const now = RETIRED[name]
  return typeof now === 'object' && 'into' in now ? now.into : null
}

interface Given {
  readonly text: string
  /** Where it stands. */
  readonly label: string
}

interface Successor {
  /** Where the setting stands that took the retired one over; null: it is not given. */
  readonly label: string | null
  /** Whether that one counts and not the retired one. */
  readonly wins: boolean
}

export function describeRetired(name: string, { text, label }: Given, successor: Successor): ConfigWarning {
  const now = RETIRED[name]
  const gone = `${name} (from ${label}) is not a setting any more and has no effect:`
  if (typeof now === 'string') return { says: `${gone} ${now}`, remedy: 'leave it out' }
  if ('now' in now) {
    const looser = now.isStricter(text) ? `, which is looser than the ${text} asked for` : ''
    return { says: `${gone} ${now.now}${looser}`, remedy: 'leave it out' }
  }
  const place = now.member === null ? now.into : `"${now.member}" of ${now.into}`
  const moved = `${name} (from ${label}) is now ${place};`
  const other = `${now.into} (from ${successor.label})`
  if (text === 'none') return { says: `${moved} none is the same as leaving it out`, remedy: 'leave it out' }
  if (successor.wins) return { says: `${moved} it is ignored, because ${other} is given`, remedy: 'leave it out' }
  const ignored = successor.label === null ? '' : `, and ${other} is ignored`
  return { says: `${moved} it still counts${ignored}`, remedy: 'write it there' }
}
