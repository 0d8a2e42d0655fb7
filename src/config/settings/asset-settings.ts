/** Uploads and stored files: how large, how long, and where they may come from and go. */
import { readList, readPath, readWordOr } from '../readers/read-choice.ts'
import { readBytes, readDurationMs, SECOND, TIB, YEAR } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const ASSET_SETTINGS = {
  maxUpload: {
    group: 'Assets',
    argument: '<size>',
    fallback: '10GiB',
    read: readBytes({ min: 1, max: 64 * TIB }),
    help: 'The largest uploaded file.',
  },
  assetRetention: {
    group: 'Assets',
    argument: '<duration>',
    fallback: 'never',
    read: readWordOr('never', null, readDurationMs({ min: 60 * SECOND, max: 100 * YEAR })),
    help: 'After how long an uploaded asset expires if the upload does not say. Outputs are kept as long as their job.',
  },
  blobGrace: {
    group: 'Assets',
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: 10 * SECOND, max: YEAR }),
    help: 'How long stored bytes stay after the last job or asset that refers to them is gone. It bounds how long a backup of a running service may take between the copy of the database and that of the bytes.',
  },
  modelsDir: {
    group: 'Assets',
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'The folder below which uploads with a `models/…` path are placed. `none`: such uploads are refused.',
  },
  importDirs: {
    group: 'Assets',
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders of this machine, comma separated, from which `POST /api/v2/assets/from-path` may import files. Empty: none.',
  },
} as const satisfies Record<string, Setting<unknown>>
