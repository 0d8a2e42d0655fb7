/** Names of the account's files in one of the three folders, the newest first. Where they lie is never told. */

import { readFolder, toBaseName } from '../files/file-names.ts'
import { type Api, type OperationDeps, paramOf, sendJson } from '../legacy-operation.ts'

const MAX_FILES = 1000

export function internalFiles(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('GET', '/internal/files/:folder', async (request, reply) => {
    const folder = readFolder(paramOf(request, 'folder'))
    if (folder === null) return sendJson(reply, { error: 'Invalid directory type' }, 400)
    const files = await assets.list(accountOf(request), folder, MAX_FILES)
    const names = [...new Set(files.map(({ filePath }) => toBaseName(filePath ?? '')))]
    return sendJson(
      reply,
      names.filter((name) => name !== '' && !name.startsWith('.')).map((name) => `${name} [${folder}]`),
    )
  })
  api.both('GET', '/internal/folder_paths', async (_request, reply) => sendJson(reply, {}))
}
