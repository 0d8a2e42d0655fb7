/** What is set aside for a call; null: it is free. */
import type { NewCall } from '../../../../../domain/models/calls/call-store.ts'
import type { HoldInput } from '../../../rows/hold-inputs.ts'

export function toCallHold(call: NewCall, holdId: string): HoldInput | null {
  const { accountId, modelId, keyId = null, holdMicros, createdAt } = call
  if (holdMicros === null) return null
  return {
    holdId,
    accountId,
    micros: holdMicros,
    at: createdAt.getTime(),
    labels: { pool: null, model: modelId, keyId },
  }
}
