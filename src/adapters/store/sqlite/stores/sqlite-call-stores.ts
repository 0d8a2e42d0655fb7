/** Model calls on SQLite, as the main thread sees them. */
import type { CallStore } from '../../../../domain/models/call-store.ts'
import type { EnqueueOutcome, RequestStore } from '../../../../domain/models/request-store.ts'
import { toAdmitInput, toAdmitOutcome } from '../operations/calls/admit-call.ts'
import { toCallEnd } from '../operations/calls/call-result.ts'
import { toFinishInput, toFinishOutcome } from '../operations/calls/finish-call.ts'
import type { EnqueueAnswer } from '../operations/calls/queued-calls.ts'
import { toUnfinishedCall } from '../operations/calls/unfinished-calls.ts'
import { inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

export function createCallStore({ write, read }: StoreChannels): CallStore {
  return {
    admit(call, limits, isValid) {
      const { accountId } = call
      const input = toAdmitInput(call, limits, isValid)
      return write.call('admitCall', input).then((answer) => toAdmitOutcome(accountId, answer))
    },
    keepProgress: ({ seq, id }, progress) => write.call('keepProgress', [seq, id, JSON.stringify(progress)]),
    finish(ref, finish) {
      const input = toFinishInput(ref, finish)
      return write.call('finishCall', input, input[3]?.[1]?.byteLength).then(toFinishOutcome)
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
      const answer = await write.call('enqueueCall', {
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
      return toEnqueueOutcome(answer)
    },
    async find(accountId, id) {
      const row = await read.call('findRequest', { accountId, id })
      if (row === null) return null
      const [requestId, modelId, state, position, result] = row
      const end = result === null ? null : toCallEnd([result[0], result[1], result[2], result[3], result[4], result[5]])
      return { id: requestId, modelId, state, position, end }
    },
    async take(accountId, limits, now) {
      const row = await write.call('takeCall', { accountId, ...limits, now: now.getTime() })
      if (row === null) return null
      const [seq, id, key, modelId, baseUrl, , , bytes, hash, holdMicros] = row
      const body =
        hash === null ? { kind: 'inline' as const, bytes: bytes ?? new Uint8Array() } : { kind: 'blob' as const, hash }
      return { ref: { seq, id, accountId }, modelId, baseUrl, isKeyed: key !== null, isPaid: holdMicros !== null, body }
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

function toEnqueueOutcome(answer: EnqueueAnswer): EnqueueOutcome {
  if (answer[0] === 'queued') return { outcome: 'queued', position: answer[1] }
  if (answer[0] === 'repeated') return { outcome: 'repeated', id: answer[1] }
  return { outcome: answer[0] }
}
