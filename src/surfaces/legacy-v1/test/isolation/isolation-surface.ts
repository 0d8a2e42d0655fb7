/** This surface in the isolation matrix: everything that an account can own here, by every name that a request can give it. */
import { readOperations, verbsOf } from '../../../../../test/isolation/contract.ts'
import type { IsolationCase, IsolationRequest, IsolationSurface } from '../../../../../test/isolation/surface.ts'
import type { World } from '../../../../../test/isolation/world.ts'
import {
  createForeignData,
  type ForeignData,
  NAMES,
  type Named,
  toForm,
  toUnknown,
  untilEnded,
} from './foreign-data.ts'

const SPEC = 'spec/legacy-v1.openapi.json'
export const OPERATIONS = readOperations(SPEC)

export const legacyV1: IsolationSurface = {
  name: 'legacy-v1',
  spec: SPEC,
  // A saved workflow is a file of the caller's own, under a name that the caller gives it.
  harmless: [
    'postFree',
    'subscribeLogs',
    'postUsers',
    'getObjectInfoOf',
    'postWorkflow',
    'getGlobalSubgraph',
    'postAssetSeed',
  ],
  lists: [
    ...OPERATIONS.flatMap(({ id, method, path }) =>
      method === 'GET' && !path.includes('{') ? [{ operation: id, path }] : [],
    ),
    ...['input', 'output', 'temp'].map((folder) => ({ operation: 'getFiles', path: `/internal/files/${folder}` })),
    { operation: 'getModelsIn', path: '/models/checkpoints' },
    { operation: 'getModelFiles', path: '/experiment/models/checkpoints' },
    { operation: 'listUserdata', path: '/userdata?dir=/&recurse=true' },
    { operation: 'getAssets', path: '/api/assets?tags_any=input,output,temp&name_contains=theirs' },
  ],
  async prepare(world) {
    const foreignData = await createForeignData(world)
    const cases = [
      ...byPath(foreignData),
      ...byQuery(foreignData),
      ...byBody(foreignData),
      ...(await byNewcomers(world, foreignData)),
    ]
    const reads = [
      '/queue',
      '/history',
      '/api/jobs',
      '/settings',
      '/v2/userdata',
      '/internal/files/input',
      '/api/assets',
    ]
    return { cases, owned: [...reads, `/userdata/${NAMES.file}`] }
  },
  async settle({ app, caller }, { status, json }, { path }) {
    if (path.endsWith('/prompt') && status === 200) await untilEnded(app.url, caller.key, json.prompt_id)
  },
}

/** Names whose unknown counterpart follows from them. */
function named(title: string, foreign: string): Named {
  return { title, foreign, unknown: toUnknown(foreign) }
}

/** What the parameter in the path of an operation can name; operations that write files and settings have cases of their own. */
function kindOf(operation: string, path: string, foreignData: ForeignData): readonly Named[] {
  const { jobs, chosen, saved, assets, hashes } = foreignData

  if (/^\/api\/(history|history_v2|job|jobs)\//.test(path)) return [...jobs, chosen]
  if (path.startsWith('/api/workflows/')) return [saved]
  if (path.startsWith('/api/assets/{id}')) return assets
  if (path.startsWith('/api/tasks/')) return assets
  if (operation === 'headAssetByHash') return hashes
  if (operation === 'getSetting') return [named('a setting', NAMES.setting)]
  if (operation === 'getUserdata' || operation === 'deleteUserdata') return [named('a file', NAMES.file)]
  return []
}

function byPath(foreignData: ForeignData): IsolationCase[] {
  return OPERATIONS.flatMap((operation) => {
    const { id, path, isAlsoBare } = operation
    const paths = isAlsoBare ? [path, path.slice('/api'.length)] : [path]
    const at = (where: string, value: string) => where.replace(/\{\w+\}/, encodeURIComponent(value))
    return kindOf(id, path, foreignData).flatMap(({ title, foreign, unknown }) =>
      paths.flatMap((where) =>
        verbsOf(operation).map((method) => ({
          operation: id,
          title: `${method} ${where} of ${title}`,
          foreign: { method, path: at(where, foreign) },
          unknown: { method, path: at(where, unknown) },
        })),
      ),
    )
  })
}

function byQuery({ hashes }: ForeignData): IsolationCase[] {
  const get = (operation: string, path: string, { title, foreign, unknown }: Named): IsolationCase => ({
    operation,
    title: `GET ${path} of ${title}`,
    foreign: { method: 'GET', path: path.replace('NAME', encodeURIComponent(foreign)) },
    unknown: { method: 'GET', path: path.replace('NAME', encodeURIComponent(unknown)) },
  })
  const files: readonly (readonly [query: string, name: Named])[] = [
    ['filename=NAME&type=input', named('an upload', NAMES.image)],
    ['filename=NAME%20%5Binput%5D', named('an upload', NAMES.image)],
    ['filename=NAME&subfolder=a', named('an output', NAMES.output)],
    ['filename=NAME', named('an output', NAMES.output)],
    ['filename=NAME&type=temp', named('a preview', NAMES.preview)],
    ['filename=NAME&type=input&preview=webp;90', named('an upload', NAMES.image)],
    ['filename=NAME&type=input&channel=a', named('an upload', NAMES.image)],
    ...hashes.map((hash) => ['filename=NAME', hash] as const),
  ]
  return [
    ...files.flatMap(([query, name]) => ['/view', '/api/view'].map((path) => get('getView', `${path}?${query}`, name))),
    get('getViewMetadata', '/view_metadata/checkpoints?filename=NAME', named('weights', NAMES.weights)),
    get('getModelPreview', '/experiment/models/preview/checkpoints/0/NAME', named('weights', NAMES.weights)),
    get('getMaskLayers', '/api/files/mask-layers?filename=NAME', {
      ...{ title: 'a mask', foreign: NAMES.mask, unknown: 'clipspace-mask-2.png' },
    }),
    ...hashes.map((hash) => get('getAssets', '/api/assets?hash=NAME', hash)),
    get('listJobs', '/api/jobs?workflow_id=NAME', named('a workflow', NAMES.workflow)),
    get('listUserdata', '/userdata?dir=NAME', named('a file', NAMES.file)),
    get('listUserdataTree', '/v2/userdata?path=NAME', named('a file', NAMES.file)),
    get('openSocket', '/ws?clientId=NAME', named('a client', NAMES.client)),
  ]
}

function byBody({ jobs, chosen, hashes, assets }: ForeignData): IsolationCase[] {
  const post = (
    operation: string,
    path: string,
    { title, foreign, unknown }: Named,
    body: (name: string) => object,
  ) => ({
    operation,
    title: `POST ${path} naming ${title}`,
    foreign: { method: 'POST', path, body: JSON.stringify(body(foreign)) },
    unknown: { method: 'POST', path, body: JSON.stringify(body(unknown)) },
  })
  const at = (operation: string, method: string, path: string, { title, foreign, unknown }: Named, body: object) => ({
    operation,
    title: `${method} ${path} of ${title}`,
    foreign: { method, path: path.replace('ID', foreign), body: JSON.stringify(body) },
    unknown: { method, path: path.replace('ID', unknown), body: JSON.stringify(body) },
  })
  const save = { '1': { class_type: 'FakeSave', inputs: { text: 'mine' } } }
  const load = (image: string) => ({ '1': { class_type: 'FakeLoad', inputs: { image } } })
  // With a number of its own, because the answer otherwise counts the account's prompts.
  const prompt = (more: object) => ({ prompt: save, number: 1, ...more })
  const images = [named('an upload', NAMES.image), named('an annotated upload', `${NAMES.image} [input]`), ...hashes]
  return [
    ...[...jobs, chosen].flatMap((name) => [
      post('postPrompt', '/api/prompt', name, (id) => prompt({ prompt_id: id })),
      post('postHistory', '/history', name, (id) => ({ delete: [id] })),
      post('postQueue', '/queue', name, (id) => ({ delete: [id] })),
      post('postInterrupt', '/interrupt', name, (id) => ({ prompt_id: id })),
      post('cancelJobs', '/api/jobs/cancel', name, (id) => ({ job_ids: [id] })),
    ]),
    ...images.map((name) => post('postPrompt', '/prompt', name, (image) => prompt({ prompt: load(image) }))),
    ...assets.flatMap((name) => [
      at('putAsset', 'PUT', '/api/assets/ID', name, { name: 'mine' }),
      at('postAssetTags', 'POST', '/api/assets/ID/tags', name, { tags: ['mine'] }),
      at('deleteAssetTags', 'DELETE', '/api/assets/ID/tags', name, { tags: ['mine'] }),
    ]),
    ...hashes.map((name) =>
      post('postAssetFromHash', '/api/assets/from-hash', name, (hash) => ({ hash, tags: ['x'] })),
    ),
    ...assets.map((name) =>
      post('postAssetDownload', '/api/assets/download', name, (preview_id) => ({
        source_url: 'file:///x',
        preview_id,
      })),
    ),
    post('postPrompt', '/prompt', named('a client', NAMES.client), (id) => prompt({ client_id: id })),
  ]
}

/** Requests that change the caller's own account, so that each of the two compared requests has its own caller. */
async function byNewcomers({ app }: World, { assets }: ForeignData): Promise<IsolationCase[]> {
  let count = 0
  const newcomer = async () => {
    const tenant = await app.account(`newcomer-${count++}`, { requestsPerMinute: null })
    await tenant.call('/userdata/mine.json', { method: 'POST', body: '{}' })
    return tenant
  }
  const ref = (type: string, filename: string) => ({ original_ref: JSON.stringify({ filename, type }) })
  const put = (path: string, body = '{"x":1}'): IsolationRequest => ({ method: 'POST', path, body })
  const requests: readonly (readonly [
    operation: string,
    toRequest: (name: (name: string) => string) => IsolationRequest,
  ])[] = [
    ['postUploadImage', (to) => toForm('/upload/image', 'mine', { fileName: to(NAMES.image) })],
    ['postUploadImage', (to) => toForm('/upload/image', 'bytes of the other', { fileName: to(NAMES.image) })],
    ['postUploadImage', (to) => toForm('/upload/image', 'mine', { fileName: to(NAMES.image), overwrite: 'true' })],
    ['postUploadMask', (to) => toForm('/upload/mask', 'mine', ref('input', to(NAMES.image)))],
    ['postUploadMask', (to) => toForm('/upload/mask', 'mine', ref('output', to(NAMES.output)))],
    ['postUploadMask', (to) => toForm('/upload/mask', 'mine', ref('temp', to(NAMES.preview)))],
    ['postUserdata', (to) => put(`/userdata/${to(NAMES.file)}?overwrite=false`)],
    ['moveUserdata', (to) => put(`/userdata/${to(NAMES.file)}/move/moved.json`)],
    ['moveUserdata', (to) => put(`/userdata/mine.json/move/${to(NAMES.file)}?overwrite=false`)],
    ['postSettings', (to) => put('/settings', JSON.stringify({ [to(NAMES.setting)]: 2 }))],
    ['postSetting', (to) => put(`/settings/${to(NAMES.setting)}`, '2')],
  ]
  const cases: IsolationCase[] = []
  const by = async ({ headers, ...request }: IsolationRequest): Promise<IsolationRequest> => ({
    ...request,
    headers: { ...headers, authorization: `Bearer ${(await newcomer()).key}` },
  })
  for (const [operation, toRequest] of requests) {
    cases.push({
      operation,
      title: operation,
      foreign: await by(toRequest((name) => name)),
      unknown: await by(toRequest(toUnknown)),
    })
  }
  for (const { title, foreign, unknown } of assets) {
    for (const field of ['id', 'preview_id']) {
      const add = (id: string) => toAssetForm({ [field]: id, tags: 'input' })
      const named = `postAsset with the ${field} of ${title}`
      cases.push({
        operation: 'postAsset',
        title: named,
        foreign: await by(add(foreign)),
        unknown: await by(add(unknown)),
      })
    }
  }
  return cases
}

function toAssetForm(fields: Readonly<Record<string, string>>): IsolationRequest {
  const { body, ...form } = toForm('/api/assets', 'mine', fields)
  return { ...form, body: String(body).replace('name="image"', 'name="file"') }
}
