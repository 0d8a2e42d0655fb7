/**
 * The life of this process among those of its service: it is known from its first beat on, and taken for dead when it has not
 * beaten for `ALIVE_MS`. Whatever else must be said again and again (names that it holds, engines that it drives) travels with the
 * beats. A process that is certainly alone writes no heartbeat and reads none.
 */
import { type Clock, uptimeMs } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { NodeAbout, NodeStore, ServiceNode, WantedName } from './node-store.ts'

export interface Heartbeat extends AsyncDisposable {
  /** The id of this process. */
  readonly nodeId: string
  /** No other process can be there. */
  readonly isAlone: boolean
  /** A step of every beat from the next one on. Steps run in the order in which they were added; one that fails stops no other. */
  onBeat(step: () => Promise<void>): void
  /** Beats now. Never rejects. */
  beat(): Promise<void>
  /** Beats from now on. Harmless when called twice. */
  start(): void
  /** For how long every beat has reached the store: 0 after one that did not. */
  steadyForMs(): number
  /** The processes that live now, this one included. */
  findLive(): Promise<readonly Pick<ServiceNode, 'id' | 'about'>[]>
  /** Says now what this process has to say about itself, and then finds those that live. */
  hear(): Promise<readonly Pick<ServiceNode, 'id' | 'about'>[]>
}

/** Wants a name of work that one process does for all, with every beat. */
export interface Contender {
  /** null: not this time. */
  want(): Promise<WantedName | null>
  told(wanted: WantedName, isHeld: boolean): void
}

/** Of a process that others may be beside. */
interface SharedHeartbeat extends Heartbeat {
  /** From the next beat on. */
  contend(contender: Contender): void
}

const BEAT_MS = 5000
/** Six beats: as long as the leases of jobs. */
const ALIVE_MS = 30_000
/** Beats that lie further apart than this do not count as steady: the store, or this process, stood still between them. */
const GAP_MS = 2 * BEAT_MS

/**
 * After an outage of the store every process gets the time of one renewal of its leases (10 s) before anybody takes what it held.
 */
const STEADY_MS = 12_000

/** Whether this process may judge by the store which others are gone. */
export function isSteady(heartbeat: Pick<Heartbeat, 'steadyForMs'>): boolean {
  return heartbeat.steadyForMs() >= STEADY_MS
}

interface HeartbeatDeps {
  readonly store: Pick<NodeStore, 'beat' | 'leave' | 'list'>
  readonly nodeId: string
  readonly about: () => NodeAbout
  readonly clock: Clock
  /** Sets the clock by the time that each beat brings back; left out: it is set otherwise. */
  readonly sampleTime?: (read: () => Promise<Date | null>) => Promise<void>
  readonly log: Log
}

/** Resolves once this process is known to the others. */
export async function openHeartbeat(deps: HeartbeatDeps): Promise<SharedHeartbeat> {
  const { store, nodeId, clock, log, sampleTime = async (read) => void (await read()) } = deps
  const contenders: Contender[] = []
  const steps: (() => Promise<void>)[] = [() => sayAlive()]
  const ending = new AbortController()
  let steady: { readonly sinceMs: number; readonly latestMs: number } | null = null
  let loop: Promise<void> | null = null
  const underway = new Set<Promise<void>>()

  async function sayAlive(): Promise<void> {
    const wishes = await collectWishes(contenders, log)
    const now = clock.now()
    const aliveUntil = new Date(now.getTime() + ALIVE_MS)
    const wanted = wishes.map(([, wish]) => wish)
    let held: readonly string[] = []
    try {
      await sampleTime(async () => {
        const answer = await store.beat({ id: nodeId, now, aliveUntil, about: deps.about(), wanted })
        held = answer.held
        return answer.time
      })
    } catch (error) {
      steady = null
      throw error
    }
    for (const [contender, wish] of wishes) contender.told(wish, held.includes(wish.name))
    const latestMs = clock.now().getTime()
    const isSteady = steady !== null && latestMs - steady.latestMs <= GAP_MS
    steady = { sinceMs: steady !== null && isSteady ? steady.sinceMs : latestMs, latestMs }
  }

  /** The end of this process waits for it. */
  function track(saying: Promise<void>): Promise<void> {
    const tracked = saying.finally(() => underway.delete(tracked))
    underway.add(tracked)
    return tracked
  }

  async function keepBeating(): Promise<void> {
    while (true) {
      await sleep(BEAT_MS, ending.signal)
      if (ending.signal.aborted) return
      await track(takeSteps(steps, ending.signal, log))
    }
  }

  await sayAlive()
  return {
    nodeId,
    isAlone: false,
    onBeat: (step) => void steps.push(step),
    contend: (contender) => void contenders.push(contender),
    beat: () => track(takeSteps(steps, ending.signal, log)),
    start() {
      loop ??= keepBeating()
    },
    steadyForMs: () => (steady === null ? 0 : clock.now().getTime() - steady.sinceMs),
    findLive: () => findLive(deps),
    async hear() {
      if (!ending.signal.aborted) await track(sayAlive())
      return findLive(deps)
    },
    async [Symbol.asyncDispose]() {
      if (ending.signal.aborted) return
      ending.abort()
      await loop
      // A heartbeat that arrives after the process has signed off would register it again.
      await Promise.allSettled(underway)
      await store.leave(nodeId).catch((error) => log.warn({ err: error }, 'this process could not sign off'))
    },
  }
}

async function takeSteps(steps: readonly (() => Promise<void>)[], signal: AbortSignal, log: Log): Promise<void> {
  for (const step of steps) {
    if (signal.aborted) return
    await step().catch((error) => log.warn({ err: error }, 'a beat did not reach the store; the next one tries again'))
  }
}

async function collectWishes(
  contenders: readonly Contender[],
  log: Log,
): Promise<(readonly [Contender, WantedName])[]> {
  const wishes: (readonly [Contender, WantedName])[] = []
  for (const contender of contenders) {
    // If it cannot be decided whether this process wants a name, it goes without it; the heartbeat must be written in any case.
    const wish = await contender.want().catch((error) => {
      log.warn({ err: error }, 'whether this process should do work of all is not known; the next beat tries again')
      return null
    })
    if (wish !== null) wishes.push([contender, wish])
  }
  return wishes
}

async function findLive({ store, nodeId, clock, about: ownAbout }: HeartbeatDeps) {
  const now = clock.now()
  const live = (await store.list()).filter(({ id, aliveUntil }) => id === nodeId || aliveUntil > now)
  // Of itself it knows more than its latest beat said.
  return live.map(({ id, about }) => ({ id, about: id === nodeId ? ownAbout() : about }))
}

interface LoneHeartbeatDeps extends Pick<HeartbeatDeps, 'nodeId' | 'about'> {
  /**
   * Joined workers reach the service through this process. While it was down it could not take their heartbeats, so they get a moment after
   * its start. Left out: there are none.
   */
  readonly guests?: { readonly store: Pick<NodeStore, 'list'>; readonly clock: Clock }
}

/** For a process that is certainly alone. */
export function createLoneHeartbeat({ nodeId, about, guests }: LoneHeartbeatDeps): Heartbeat {
  const openedMs = uptimeMs()

  async function findGuests(): Promise<readonly ServiceNode[]> {
    const now = guests?.clock.now() ?? new Date(0)
    return ((await guests?.store.list()) ?? []).filter(({ aliveUntil }) => aliveUntil > now)
  }

  const findLive = async () => [{ id: nodeId, about: about() }, ...(await findGuests())]
  return {
    nodeId,
    isAlone: true,
    onBeat() {},
    async beat() {},
    start() {},
    steadyForMs: () => (guests === undefined ? Number.POSITIVE_INFINITY : uptimeMs() - openedMs),
    findLive,
    hear: findLive,
    async [Symbol.asyncDispose]() {},
  }
}
