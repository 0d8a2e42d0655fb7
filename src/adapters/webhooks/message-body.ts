/** What is sent, in the words of the wire: type, time and what was true then. The same message makes the same text in every try. */
import type { Message, MessageType } from '../../domain/webhooks/webhook.ts'

type Facts = Readonly<Record<string, unknown>>
type ToData = (message: Message, facts: Facts) => object

export function toMessageBody(message: Message): string {
  const facts = JSON.parse(message.facts) as Facts
  const data = DATA[message.type](message, facts)
  // Receivers of pool hooks know the fields at the top, where they stood before there were webhooks.
  const former = message.type.startsWith('pool.') ? facts : {}
  return JSON.stringify({ type: message.type, timestamp: message.at.toISOString(), data, ...former })
}

const MICROS_PER_USD = 1_000_000

function toTime(value: unknown): string | null {
  return typeof value === 'number' ? new Date(value).toISOString() : null
}

function toOutput(output: Facts): object {
  return { ...output, hash: `blake3:${String(output['hash'])}` }
}

const toJob: ToData = ({ subject }, facts) => ({
  job_id: subject,
  status: facts['status'],
  created_at: toTime(facts['created_at']),
  started_at: toTime(facts['started_at']),
  completed_at: toTime(facts['completed_at']),
  expires_at: toTime(facts['expires_at']),
  attempt: facts['attempt'],
  metadata: facts['metadata'],
  error: toError(facts['error'] as Facts | null),
  output_count: facts['output_count'],
  outputs: (facts['outputs'] as readonly Facts[]).map(toOutput),
  ...(facts['reused_from'] !== undefined && { reused_from: facts['reused_from'] }),
})

/** Without the traceback, which may be long: the job has it. */
function toError(error: Facts | null): object | null {
  if (error === null) return null
  const { code, message, nodeId = null, classType = null } = error
  return { code, message, node_id: nodeId, class_type: classType }
}

const CALL_STATUS: Readonly<Record<string, string>> = {
  canceled: 'canceled',
  interrupted: 'failed',
  unusable: 'failed',
}

const toCall: ToData = ({ subject }, facts) => {
  const refusal = facts['refusal'] as Facts | null
  const micros = facts['cost_micros']
  return {
    request_id: subject,
    model: facts['model'],
    status: CALL_STATUS[String(facts['state'])] ?? (refusal === null ? 'succeeded' : 'failed'),
    created_at: toTime(facts['created_at']),
    started_at: toTime(facts['started_at']),
    completed_at: toTime(facts['completed_at']),
    error: refusal === null ? null : { code: refusal['refusal'], message: refusal['message'] },
    content_type: facts['content_type'],
    size_bytes: facts['content_type'] === null ? null : facts['size_bytes'],
    cost_usd: typeof micros === 'number' ? micros / MICROS_PER_USD : null,
  }
}

const toCredits: ToData = (_message, facts) => ({
  balance_usd: Number(facts['balance_micros']) / MICROS_PER_USD,
  threshold_usd: Number(facts['mark_micros']) / MICROS_PER_USD,
})

/** Written by this service in the words of the wire already. */
const asItIs: ToData = (_message, facts) => facts

const DATA: Readonly<Record<MessageType, ToData>> = {
  'job.queued': toJob,
  'job.started': toJob,
  'job.succeeded': toJob,
  'job.failed': toJob,
  'job.canceled': toJob,
  'job.expired': toJob,
  'output.created': ({ subject }, facts) => ({ job_id: subject, output: toOutput(facts) }),
  'model_call.completed': toCall,
  'credits.low': toCredits,
  'webhook.disabled': asItIs,
  'webhook.test': asItIs,
  'pool.workers_wanted': asItIs,
  'pool.workers_idle': asItIs,
}
