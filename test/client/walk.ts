/** What `walk.py` does too, and says the same of: the operations that the official SDKs lack, as a program would use them. */
import {
  AtelierError,
  connect,
  createSchedule,
  createWebhook,
  deleteAsset,
  deleteSchedule,
  deleteWebhook,
  getAsset,
  getAssetContent,
  getBatch,
  getBatchOutputs,
  getJobEvents,
  getQueue,
  headAssetByHash,
  listJobs,
  listSchedules,
  listWebhooks,
  listWeights,
  pages,
  pauseQueue,
  pauseSchedule,
  postAssets,
  postBatch,
  postJobs,
  publishEndpoint,
  resumeQueue,
  runEndpoint,
  verifyWebhook,
  type WebhookMessage,
  waitUntil,
} from 'atelier/client'
import { createAccount, createKey, grantCredits, listAccounts } from 'atelier/client/admin'
import { getRequest, getRequestStatus, submitRequest } from 'atelier/client/router'

export interface Given {
  readonly url: string
  readonly adminToken: string
  readonly account: string
  readonly workflow: Readonly<Record<string, unknown>>
  readonly message: {
    readonly secret: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
}

async function refusal(asked: Promise<unknown>): Promise<AtelierError> {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof AtelierError)) throw new Error('nothing was refused', { cause: error })
  return error
}

export async function walk({ url, adminToken, account, workflow, message }: Given): Promise<unknown[]> {
  const said: unknown[] = []
  const operator = connect({ baseUrl: url, token: adminToken })
  await createAccount(operator, { body: { id: account } })
  const { text } = await createKey(operator, { id: account, body: { name: 'walk' } })
  said.push((await grantCredits(operator, { id: account, body: { usd: '5' } })).outcome)
  const found: string[] = []
  for await (const page of pages(listAccounts, operator, { limit: 1 }, { by: 'after' }))
    found.push(...page.accounts.map(({ id }) => id))
  said.push(found.filter((id) => id === account).length)

  const client = connect({ baseUrl: url, token: text })
  const { id } = await postBatch(client, { body: { workflow, rows: [{ '2.text': 'one' }, { '2.text': 'two' }] } })
  const batch = await waitUntil(
    () => getBatch(client, { id }),
    ({ is_done }) => is_done,
    { everyMs: 20 },
  )
  said.push(batch.counts.succeeded)
  let listed = 0
  for await (const page of pages(listJobs, client, { batch_id: id, limit: 1, status: ['succeeded', 'failed'] }))
    listed += page.jobs.length
  said.push(listed)
  const archive = await (await getBatchOutputs(client, { id })).arrayBuffer()
  said.push(String.fromCharCode(...new Uint8Array(archive.slice(0, 2))))

  const job = await postJobs(client, { body: { workflow, metadata: { from: 'walk' } } })
  const events: string[] = []
  let status: string = job.status
  for await (const told of getJobEvents(client, { id: job.id })) {
    if (told.event === 'status') status = told.data.status
    if (!events.includes(told.event)) events.push(told.event)
  }
  said.push(status, events.includes('output'))
  for await (const page of pages(listJobs, client, { metadata: { from: 'walk' } })) said.push(page.jobs.length)

  await publishEndpoint(client, { body: { name: 'card', file: workflow } })
  let answered = 0
  const run = await runEndpoint(
    client,
    { name: 'card', prefer: 'wait=60', body: { inputs: { headline: 'Hi' } } },
    { onResponse: (response) => (answered = response.status) },
  )
  said.push(answered, run.status, run.endpoint.version, run.inputs?.['headline'])
  const wrong = await refusal(runEndpoint(client, { name: 'card', body: { inputs: { headlin: 'x' } } }))
  said.push(wrong.status, wrong.code, typeof wrong.requestId, Object.keys(wrong.details as object).includes('inputs'))

  const schedule = await createSchedule(client, {
    body: {
      name: 'cards',
      cron: '30 2 * * *',
      time_zone: 'Europe/Berlin',
      endpoint: 'card',
      inputs: { headline: 'x' },
    },
  })
  await pauseSchedule(client, { id: schedule.id, body: { reason: 'holidays' } })
  said.push((await listSchedules(client)).schedules.map(({ state }) => state))
  await deleteSchedule(client, { id: schedule.id })
  said.push((await listSchedules(client)).schedules.length)

  const webhook = await createWebhook(client, { body: { url: 'https://example.com/hooks', events: ['job.failed'] } })
  said.push(webhook.secret.slice(0, 6), (await listWebhooks(client)).webhooks.length)
  await deleteWebhook(client, { id: webhook.id })
  said.push((await verifyWebhook<WebhookMessage>(message)).type)
  said.push((await refusal(verifyWebhook({ ...message, body: `${message.body} ` }))).code)

  const asset = await postAssets(client, {
    body: {
      ...{ content_type: 'text/plain', file_path: 'notes.txt', tags: ['one', 'two'] },
      file: new Blob(['what was said'], { type: 'text/plain' }),
    },
  })
  said.push(asset.file_path, await (await getAssetContent(client, { id: asset.id })).text())
  said.push((await headAssetByHash(client, { hash: asset.hash ?? '' })).status)
  said.push(await deleteAsset(client, { id: asset.id }))
  said.push((await refusal(getAsset(client, { id: asset.id }))).status)

  await pauseQueue(client, { body: { reason: 'a walk' } })
  said.push((await getQueue(client)).pauses[0]?.reason)
  await resumeQueue(client)
  said.push(Array.isArray((await listWeights(client)).weights))

  const handle = await submitRequest(client, { provider: 'sandbox', model: 'image', body: { seed: 7 } })
  const request = { provider: 'sandbox', model: 'image', request_id: handle.request_id }
  await waitUntil(
    () => getRequestStatus(client, request),
    (told) => told.status === 'COMPLETED',
    { everyMs: 20 },
  )
  const answer = await getRequest(client, request)
  said.push(answer.status, answer.headers.get('content-type'), (await answer.arrayBuffer()).byteLength > 0)
  return said
}
