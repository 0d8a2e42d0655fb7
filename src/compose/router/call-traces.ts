/** Calls of models as spans: what the caller waits for, and what is done with the provider, which may go on without a caller. */
import { inSpan, type Tracer } from '../../../lib/tracing/tracer.ts'
import type { DriveCall } from '../../domain/models/calls/drive-call.ts'
import type { DrivenCall } from '../../domain/models/calls/live-calls.ts'
import type { RunModel } from '../../domain/models/calls/run-call.ts'
import type { Model } from '../../domain/models/catalog/model.ts'

export function traceRunModel(tracer: Tracer | undefined, run: RunModel): RunModel {
  if (tracer === undefined) return run
  return (request) => {
    const { opened, requestId } = request
    return inSpan(tracer, 'model.call', { attributes: toAttributes(requestId, opened.model) }, async (span) => {
      const answer = await run(request)
      span.set({ 'atelier.call.end': answer.end.kind, 'atelier.call.replay': answer.isReplay })
      return answer
    })
  }
}

/** A call out of the queue continues the trace of its submit; one that nobody traced then begins a trace of its own. */
export function traceDrive(drive: DriveCall, tracer: Tracer | undefined): DriveCall {
  if (tracer === undefined) return drive
  const toOptions = ({ live, trace }: DrivenCall) => ({
    attributes: toAttributes(live.ref.id, live.model),
    ...(trace != null && { parent: trace }),
  })
  return {
    submit: (call, ...rest) => inSpan(tracer, 'model.submit', toOptions(call), () => drive.submit(call, ...rest)),
    collect: (call, ...rest) => inSpan(tracer, 'model.collect', toOptions(call), () => drive.collect(call, ...rest)),
  }
}

function toAttributes(callId: string, { id, provider }: Pick<Model, 'id' | 'provider'>) {
  return { 'atelier.call.id': callId, 'atelier.model': id, 'atelier.provider': provider }
}
