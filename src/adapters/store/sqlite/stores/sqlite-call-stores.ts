/** Model calls on SQLite, as the main thread sees them. */

import { readKeptTrace, writeTraceContext } from '../../../../../lib/tracing/trace-context.ts'
import type { CallFinish, CallStore } from '../../../../domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../../domain/models/queue/request-store.ts'
import { toCallBody, toCallEnd } from '../../call-records.ts'
import { toToldCall } from '../../rows/told-rows.ts'
import { toAdmitInput, toAdmitOutcome } from '../operations/calls/admit-call.ts'
import { toHeldFields, toUnfinishedCall } from '../operations/calls/call-leases.ts'
import { toFinishInput, toFinishOutcome } from '../operations/calls/finish-call.ts'
import { inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

export function createCallStore({ write, read }: StoreChannels): CallStore {
  return {
    admit(call, limits, options) {
      const asker = { accountId: call.accountId, owner: options.lease.owner }
      return write
        .call('admitCall', toAdmitInput(call, limits, options))
        .then((answer) => toAdmitOutcome(asker, answer))
    },
    keepProgress: ({ seq, id, owner, fence }, progress) =>
      write.call('keepProgress', {
        seq,
        id,
        owner,
        fence,
        progress: JSON.stringify(progress),
        task: progress.told?.task ?? null,
      }),
    finish(ref, finish) {
      return write.call('finishCall', toFinishInput(ref, finish), bytesOf(finish.end)).then(toFinishOutcome)
    },
    async renew(calls, until) {
      if (calls.length === 0) return []
      const renewed = await write.call('renewCalls', { calls: calls.map(toHeldFields), until: until.getTime() })
      return renewed.map(([id, stopAsked]) => ({ id, isStopAsked: stopAsked === 1 }))
    },
    async release(calls) {
      if (calls.length > 0) await write.call('releaseCalls', calls.map(toHeldFields))
    },
    async takeLapsed({ lease: { owner, until }, limit, ...options }) {
      const lapsed = {
        owner,
        lapsedBefore: options.lapsedBefore.getTime(),
        ownLapsedBefore: options.ownLapsedBefore.getTime(),
        except: options.except.map(({ seq }) => seq),
      }
      if (!(await read.call('hasLapsedCalls', lapsed))) return []
      const taken = await write.call('takeLapsedCalls', { ...lapsed, leaseUntil: until.getTime(), limit })
      return taken.map((row) => toUnfinishedCall(owner, row))
    },
    list: (accountId, query) => read.call('listCalls', { accountId, ...query }),
    async findTold(accountId, query) {
      const input = { accountId, key: 'key' in query ? query.key : null, task: 'task' in query ? query.task : null }
      return toToldCall(await read.call('findTold', input))
    },
    isRunning: ({ seq, id }) => read.call('isCallRunning', { seq, id }),
    async standing(accountId) {
      const [runningCalls, committedMicros] = await read.call('callStanding', accountId)
      return { runningCalls, committedMicros }
    },
    canPay: (accountId, micros) => read.call('canPay', { accountId, micros }),
    sweep: (now) => inSlices(UNLIMITED, (limit) => write.call('sweepCalls', { now: now.getTime(), limit })),
  }
}

export function createRequestStore({ write, read }: StoreChannels): RequestStore {
  return {
    async enqueue(request, { maxWaiting, isValid }) {
      const { body, createdAt, expiresAt, isCostly, modelId, ...rest } = request
      const [bytes, hash] = body.kind === 'inline' ? [body.bytes, null] : [null, body.hash]
      return write.call('enqueueCall', {
        ...rest,
        model: modelId,
        keyId: request.keyId ?? null,
        now: createdAt.getTime(),
        expiresAt: expiresAt.getTime(),
        costly: Number(isCostly),
        body: bytes,
        hash,
        sizeBytes: request.bodyBytes,
        maxWaiting,
        isValid,
        hook: request.hook ?? null,
        trace: request.trace == null ? null : writeTraceContext(request.trace),
      })
    },
    async find(accountId, id) {
      const row = await read.call('findRequest', { accountId, id })
      if (row === null) return null
      const [requestId, modelId, state, position, result] = row
      return { id: requestId, modelId, state, position, end: result === null ? null : toCallEnd(result) }
    },
    async take(accountId, limits, { now, lease: { owner, until } }) {
      const input = { accountId, ...limits, now: now.getTime(), owner, leaseUntil: until.getTime() }
      const taken = await write.call('takeCall', input)
      if (taken === null) return null
      const { seq, id, fence, bytes, hash, trace, ...call } = taken
      const ref = { seq, id, accountId, owner, fence }
      return { ref, body: toCallBody(bytes, hash), trace: readKeptTrace(trace), ...call }
    },
    putBack: ({ seq, id, owner, fence }, { isLoss }) =>
      write.call('putBackCall', { seq, id, owner, fence, loss: Number(isLoss) }),
    accountsWaiting: () => read.call('accountsWaiting', null),
    cancel: (accountId, id, at, forgetAt) =>
      write.call('cancelCall', { accountId, id, at: at.getTime(), forgetAt: forgetAt.getTime() }),
    timeOut(before, at, forgetAt) {
      const times = { before: before.getTime(), at: at.getTime(), forgetAt: forgetAt.getTime() }
      return inSlices(UNLIMITED, (limit) => write.call('timeOutCalls', { ...times, limit }))
    },
  }
}

/** What a message about this end weighs, apart from its few short fields. */
function bytesOf(end: CallFinish['end']): number | undefined {
  return end?.kind === 'result' && end.result.body.kind === 'inline' ? end.result.body.bytes.byteLength : undefined
}
