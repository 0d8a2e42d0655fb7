/** Model calls and those that wait for room, for any number of nodes that share the store. */
import { BoundedSet } from '../../../../../lib/bounded-map.ts'
import type { Log } from '../../../../../lib/log.ts'
import type { CallBody, CallStore, HeldCall, NewLease } from '../../../../domain/models/calls/call-store.ts'
import type { SentJournal } from '../../../../domain/models/calls/live-calls.ts'
import type { RequestStore } from '../../../../domain/models/queue/request-store.ts'
import { chore, defineStore, durable, type OpenStore, read, relaxed } from '../../statements/operation.ts'
import { inSlices } from '../in-slices.ts'
import { admitCall } from './admit-call.ts'
import {
  beginAttempt,
  findTold,
  isCallRunning,
  keepProgress,
  listCalls,
  markSent,
  releaseCalls,
  renewCalls,
  sweepCalls,
  takeLapsedCalls,
} from './call-leases.ts'
import { canPay, readStanding } from './call-pool.ts'
import { finishCall } from './finish-call.ts'
import {
  cancelCall,
  enqueueCall,
  findAccountsWaiting,
  findImpatient,
  findRequest,
  putBackCall,
  takeCall,
  timeOutCall,
} from './queued-calls.ts'

interface CallSteps extends Omit<CallStore, 'sweep'> {
  sweep(now: Date, limit: number): Promise<number>
  /** Whether the call may have reached its provider. False: it is another node's. */
  recordSent(call: HeldCall, isSent: true): Promise<boolean>
  retractSent(call: HeldCall, isSent: false): Promise<boolean>
}

export const callSteps = defineStore<CallSteps>('calls', {
  // A call that the first try let in is found by the second.
  admit: durable(admitCall, { isRepeatable: true }),
  keepProgress: durable(keepProgress, { isRepeatable: true, isEssential: true }),
  beginAttempt: durable(beginAttempt, { isRepeatable: true, isEssential: true }),
  finish: durable(finishCall, {
    isEssential: true,
    weigh: (_, { end }) => (end?.kind === 'result' ? bytesOf(end.result.body) : 0),
  }),
  renew: relaxed(renewCalls, { isEssential: true }),
  release: relaxed(releaseCalls, { isEssential: true }),
  takeLapsed: durable(takeLapsedCalls, { isRepeatable: true, isEssential: true }),
  isRunning: read(isCallRunning),
  findTold: read(findTold),
  list: read(listCalls),
  standing: read(readStanding),
  canPay: read(canPay),
  sweep: chore(sweepCalls, { isEssential: true }),
  recordSent: durable(markSent),
  retractSent: relaxed(markSent),
})

/** What a message with this body weighs, apart from its few short fields: a large body is stored aside and named by its hash. */
function bytesOf(body: CallBody): number {
  return body.kind === 'inline' ? body.bytes.byteLength : 0
}

interface RequestSteps extends Omit<RequestStore, 'timeOut'> {
  findImpatient(before: Date, limit: number): Promise<readonly { readonly accountId: string; readonly id: string }[]>
  timeOut(accountId: string, id: string, at: Date, forgetAt: Date): Promise<boolean>
}

export const requestSteps = defineStore<RequestSteps>('requests', {
  enqueue: durable(enqueueCall, { isRepeatable: true, weigh: ({ body }) => bytesOf(body) }),
  find: read(findRequest, { isSnapshot: true }),
  take: durable(takeCall, { isRepeatable: true }),
  putBack: durable(putBackCall, { isEssential: true }),
  accountsWaiting: read(findAccountsWaiting),
  cancel: durable(cancelCall, { isRepeatable: true, isEssential: true }),
  findImpatient: read(findImpatient),
  timeOut: durable(timeOutCall, { isEssential: true }),
})

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

export function createCallStore(open: OpenStore, toOwnEnd: ToOwnEnd): CallStore {
  const calls = open(callSteps)
  return {
    ...calls,
    admit: (call, limits, options) => calls.admit(call, limits, { ...options, lease: toOwnEnd(options.lease) }),
    takeLapsed: (options) => calls.takeLapsed({ ...options, lease: toOwnEnd(options.lease) }),
    sweep: (now) => inSlices((limit) => calls.sweep(now, limit)),
  }
}

export function createRequestStore(open: OpenStore, toOwnEnd: ToOwnEnd): RequestStore {
  const requests = open(requestSteps)
  return {
    ...requests,
    take: (accountId, limits, { now, lease }) => requests.take(accountId, limits, { now, lease: toOwnEnd(lease) }),
    // One operation for each: it locks the pool of its account, and no two pools at a time.
    timeOut: (before, at, forgetAt) =>
      inSlices(async (limit) => {
        let ended = 0
        for (const { accountId, id } of await requests.findImpatient(before, limit)) {
          if (await requests.timeOut(accountId, id, at, forgetAt)) ended += 1
        }
        return ended
      }),
  }
}

/** The journal in the rows of the calls: an entry is durable, and made only by the node that holds the call. */
export function createSentJournal(open: OpenStore, log: Log): SentJournal {
  const calls = open(callSteps)
  return {
    async record(call) {
      if (!(await calls.recordSent(call, true))) throw new Error(`The call ${call.id} is another node's.`)
    },
    async retract(call) {
      try {
        await calls.retractSent(call, false)
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
