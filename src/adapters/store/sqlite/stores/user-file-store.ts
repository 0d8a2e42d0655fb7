/** Small files of accounts on SQLite, as the main thread sees them. */
import type { PutOutcome, UserFileInfo, UserFileStore } from '../../../../domain/accounts/user-files.ts'
import type { UserFileRow } from '../operations/accounts/user-file-rows.ts'
import type { StoreChannels } from './store-channels.ts'

function toInfo([path, sizeBytes, createdAt, modifiedAt]: UserFileRow): UserFileInfo {
  return { path, sizeBytes, createdAt: new Date(createdAt), modifiedAt: new Date(modifiedAt) }
}

function toOutcome<Word extends string>(answer: UserFileRow | Word): { outcome: Word } | PutOutcome {
  return typeof answer === 'string' ? { outcome: answer } : { outcome: 'stored', file: toInfo(answer as UserFileRow) }
}

export function createUserFileStore({ write, read }: StoreChannels): UserFileStore {
  return {
    async put(accountId, { path, bytes, overwrite, now, limits }) {
      const input = { accountId, path, bytes, overwrite, now: now.getTime(), ...limits }
      return toOutcome(await write.call('putUserFile', input, bytes.byteLength))
    },
    read: (accountId, path) => read.call('readUserFile', [accountId, path]),
    async list(accountId) {
      const rows = await read.call('listUserFiles', accountId)
      return rows.map(toInfo)
    },
    async move(accountId, move) {
      return toOutcome(await write.call('moveUserFile', { accountId, ...move }))
    },
    remove: (accountId, path) => write.call('removeUserFile', [accountId, path]),
  }
}
