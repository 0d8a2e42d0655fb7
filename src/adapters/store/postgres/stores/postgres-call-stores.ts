/** Model calls on Postgres: let in, driven and ended by any number of nodes. */
import { BoundedSet } from '../../../../../lib/bounded-map.ts'
import type { CallStore, NewLease } from '../../../../domain/models/calls/call-store.ts'
import type { SentJournal } from '../../../../domain/models/calls/sent-journal.ts'
import type { RequestStore } from '../../../../domain/models/queue/request-store.ts'
import { admitCall } from '../operations/calls/admit-call.ts'
import { isCallRunning, markSent, releaseCalls, renewCalls, takeLapsedCalls } from '../operations/calls/call-leases.ts'
import { canPay, readStanding } from '../operations/calls/call-pool.ts'
import { finishCall } from '../operations/calls/finish-call.ts'
import { listCalls } from '../operations/calls/list-calls.ts'
import {
  cancelCall,
  enqueueCall,
  findAccountsWaiting,
  findImpatient,
  findRequest,
  putBackCall,
  takeCall,
  timeOutCall,
} from '../operations/calls/queued-calls.ts'
import { findTold, keepProgress, sweepCalls } from '../operations/calls/unfinished-calls.ts'
import type { StoreParts } from './store-parts.ts'

// Rows of one transaction of a sweep: few enough that its locks hold up no other transaction.
const SLICE = 100

export function createCallStore({ durable, relaxed, read, chore }: StoreParts, toOwnEnd: ToOwnEnd): CallStore {
  return {
    admit(call, limits, asked) {
      let tries = 0
      const options = { ...asked, lease: toOwnEnd(asked.lease) }
      const body = (tx: Parameters<typeof admitCall>[0]) =>
        admitCall(tx, { call, limits, options, isAgain: tries++ > 0 })
      // A call that the first try let in is found by the second.
      return durable.transaction(body, { isRepeatable: true })
    },
    keepProgress: (call, progress) =>
      durable.transaction((tx) => keepProgress(tx, call, progress), { isRepeatable: true }),
    finish: (call, finish) => durable.transaction((tx) => finishCall(tx, call, finish)),
    renew: async (calls, until) => (calls.length === 0 ? [] : renewCalls(relaxed, calls, until)),
    async release(calls) {
      if (calls.length > 0) await releaseCalls(relaxed, calls)
    },
    takeLapsed(options) {
      let tries = 0
      const own = { ...options, lease: toOwnEnd(options.lease) }
      return durable.transaction((tx) => takeLapsedCalls(tx, own, tries++ > 0), { isRepeatable: true })
    },
    list: (accountId, query) => listCalls(read, accountId, query),
    findTold: (accountId, query) => findTold(read, accountId, query),
    isRunning: (call) => isCallRunning(read, call),
    standing: (accountId) => readStanding(read, accountId),
    canPay: (accountId, micros) => canPay(read, accountId, micros),
    sweep: (now) => inSlices((limit) => chore.transaction((tx) => sweepCalls(tx, now.getTime(), limit))),
  }
}

export function createRequestStore({ durable, read }: StoreParts, toOwnEnd: ToOwnEnd): RequestStore {
  return {
    enqueue(request, options) {
      let tries = 0
      const body = (tx: Parameters<typeof enqueueCall>[0]) =>
        enqueueCall(tx, request, { ...options, isAgain: tries++ > 0 })
      return durable.transaction(body, { isRepeatable: true })
    },
    find: (accountId, id) => read.transaction((tx) => findRequest(tx, accountId, id), { isSnapshot: true }),
    take(accountId, limits, { now, lease }) {
      let tries = 0
      const taking = { accountId, limits, now: now.getTime(), lease: toOwnEnd(lease) }
      return durable.transaction((tx) => takeCall(tx, { ...taking, isAgain: tries++ > 0 }), { isRepeatable: true })
    },
    putBack: (call, { isLoss }) => durable.transaction((tx) => putBackCall(tx, call, isLoss)),
    accountsWaiting: () => findAccountsWaiting(read),
    cancel: (accountId, id, at, forgetAt) =>
      durable.transaction((tx) => cancelCall(tx, { accountId, id, at: at.getTime(), forgetAt: forgetAt.getTime() }), {
        isRepeatable: true,
      }),
    // One transaction for each: it locks the pool of its account, and no two pools at a time.
    timeOut: (before, at, forgetAt) =>
      inSlices(async (limit) => {
        const impatient = await findImpatient(read, before.getTime(), limit)
        let ended = 0
        for (const [accountId, id] of impatient) {
          const end = { accountId, id, at: at.getTime(), forgetAt: forgetAt.getTime() }
          if (await durable.transaction((tx) => timeOutCall(tx, end))) ended += 1
        }
        return ended
      }),
  }
}

/** The journal in the rows of the calls: an entry is durable, and made only by the node that holds the call. */
export function createSentJournal({ durable, relaxed, log }: StoreParts): SentJournal {
  return {
    async record(call) {
      if (!(await markSent(durable, call, true))) throw new Error(`The call ${call.id} is another node's.`)
    },
    async retract(call) {
      try {
        await markSent(relaxed, call, false)
      } catch (error) {
        // The entry stays: after a crash the call counts as one that may have left, which costs its key and never money.
        log.debug({ err: error, callId: call.id }, 'what was not sent could not be written down')
      }
    },
    forget() {},
    mayHaveLeft: ({ isSent }) => isSent,
    dropEarlier() {},
  }
}

type ToOwnEnd = (lease: NewLease) => NewLease

// More than takes are under way at a time.
const REMEMBERED_ENDS = 1000

/**
 * Leases of one owner end at different milliseconds, each a little later than asked for where that is needed: so a take whose
 * answer was lost finds what it has taken.
 */
export function createOwnEnds(): ToOwnEnd {
  const used = new BoundedSet<string>(REMEMBERED_ENDS)
  return ({ owner, until }) => {
    let end = until.getTime()
    while (used.has(`${owner} ${end}`)) end += 1
    used.add(`${owner} ${end}`)
    return { owner, until: new Date(end) }
  }
}

/** Repeats a sweep until it finds less than it was allowed; returns the sum. */
async function inSlices(sweep: (limit: number) => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const found = await sweep(SLICE)
    total += found
    if (found < SLICE) return total
  }
}
