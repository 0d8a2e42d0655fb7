/** Model calls on SQLite, as the main thread sees them. */

import type { CallFinish, CallStore } from '../../../../domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../../domain/models/queue/request-store.ts'
import { toAdmitInput, toAdmitOutcome } from '../operations/calls/admit-call.ts'
import { toCallBody, toCallEnd } from '../operations/calls/call-result.ts'
import { toFinishInput, toFinishOutcome } from '../operations/calls/finish-call.ts'
import { toUnfinishedCall } from '../operations/calls/unfinished-calls.ts'
import { inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

export function createCallStore({ write, read }: StoreChannels): CallStore {
  return {
    admit(call, limits, isValid) {
      const { accountId } = call
      const input = toAdmitInput(call, limits, isValid)
      return write.call('admitCall', input).then((answer) => toAdmitOutcome(accountId, answer))
    },
    keepProgress: ({ seq, id }, progress) =>
      write.call('keepProgress', { seq, id, progress: JSON.stringify(progress) }),
    finish(ref, finish) {
      return write.call('finishCall', toFinishInput(ref, finish), bytesOf(finish.end)).then(toFinishOutcome)
    },
    async unfinished(after, limit) {
      return (await read.call('unfinishedCalls', { after, limit })).map(toUnfinishedCall)
    },
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
        now: createdAt.getTime(),
        expiresAt: expiresAt.getTime(),
        costly: Number(isCostly),
        body: bytes,
        hash,
        sizeBytes: request.bodyBytes,
        maxWaiting,
        isValid,
      })
    },
    async find(accountId, id) {
      const row = await read.call('findRequest', { accountId, id })
      if (row === null) return null
      const [requestId, modelId, state, position, result] = row
      return { id: requestId, modelId, state, position, end: result === null ? null : toCallEnd(result) }
    },
    async take(accountId, limits, now) {
      const taken = await write.call('takeCall', { accountId, ...limits, now: now.getTime() })
      if (taken === null) return null
      const { seq, id, bytes, hash, ...call } = taken
      return { ref: { seq, id, accountId }, body: toCallBody(bytes, hash), ...call }
    },
    putBack: ({ seq, id }) => write.call('putBackCall', { seq, id }),
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
