/** Where records and bytes are kept. */
import { readChoice, readPath, readWordOr } from '../readers/read-choice.ts'
import { readBytes, readCount, TIB } from '../readers/read-quantity.ts'
import { readBucket, readBucketKeys, readDatabase } from '../readers/read-storage.ts'
import { readSecretKeys } from '../secrets.ts'
import type { SettingTable } from './setting.ts'

export const STORAGE_SETTINGS = {
  dataDir: {
    argument: '<folder>',
    fallback: '.atelier',
    read: readPath,
    help: 'The folder for all data; with a `database`, only for the stored bytes; with a bucket, only for its cache. A relative path in the config file starts at that file, any other at the working directory.',
    who: 'Whoever keeps data on another disk, or starts the service from changing folders.',
  },
  database: {
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readDatabase),
    help: 'A Postgres database (15 to 18) for all records, which several processes may share: `postgres://user@host:5432/name?sslmode=verify-full`, also with several hosts and with the parameters and `PG*` variables of libpq that docs/scale-out.md lists. A password belongs in the variable, in `PGPASSWORD` or in `databasePasswordFile`, never on a command line. `none`: SQLite in the data folder.',
    who: 'Operators of more than one process, or with backups and fail-over of their own for Postgres.',
    isSecret: true,
  },
  databasePasswordFile: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'A file whose first line is the password of the `database`.',
    who: 'Operators whose platform gives secrets as files.',
  },
  databasePool: {
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 4, max: 500 })),
    help: 'The most connections that this process opens to the `database`. `auto`: 8, and 4 in the role `worker`.',
    who: 'Operators whose Postgres allows few connections for all processes together.',
  },
  migrate: {
    argument: '<mode>',
    fallback: 'by role',
    read: readWordOr('by role', 'by role', readChoice(['auto', 'check'])),
    help: '`auto`: a start brings the schema of the `database` up to date. `check`: a start is refused until `atelier migrate` has done so. `by role`: `auto` in the role `all`, otherwise `check`.',
    who: 'Operators who change schemas in a step of their own, before a roll-out.',
  },
  blobs: {
    argument: '<url>',
    fallback: 'files',
    read: readWordOr('files', null, readBucket),
    help: 'Where bytes are kept: `files` in the data folder, or a bucket of S3-compatible storage, `s3://bucket/prefix?endpoint=https://host&region=eu-central-1&pathStyle=1`; `publicEndpoint` if clients reach the storage at another address. `keys=<file>` names a file whose first line is the value of `blobsKeys`, read again when the bucket no longer accepts them. A bucket needs a `database`. See docs/scale-out.md.',
    who: 'Operators of processes on several machines that share no disk.',
  },
  blobsKeys: {
    argument: null,
    fallback: 'none',
    read: readWordOr('none', null, readBucketKeys),
    help: 'The keys of the bucket that `blobs` names: `id:secret`, or `id:secret:token`. `none`: they are in the file that `blobs` names, or looked for where programs on AWS find theirs, and renewed: `AWS_ACCESS_KEY_ID` and its companions, a profile, a web identity, the container, the machine. See docs/scale-out.md.',
    who: 'Operators of a bucket that is not reached by the role of the machine.',
    isSecret: true,
  },
  blobCache: {
    argument: '<size>',
    fallback: '10GiB',
    read: readBytes({ min: 0, max: TIB }),
    help: 'With a bucket: how much of it this process keeps in the data folder for engines that read files. `0B` keeps a file only while a run uses it.',
    who: 'Operators of workers with little disk, or with large inputs that are used again and again.',
  },
  content: {
    argument: '<way>',
    fallback: 'direct',
    read: readChoice(['direct', 'proxy']),
    help: 'With a bucket: `direct` sends downloads of pictures, sound, video and other inert types to the bucket by a redirect that is valid for at most five minutes; with `proxy` this process sends all bytes.',
    who: 'Operators whose clients cannot reach the bucket: `proxy`.',
  },
  secretKey: {
    argument: null,
    fallback: 'none',
    read: readWordOr('none', [], readSecretKeys),
    help: '32 bytes in hex or base64 that encrypt the credentials in `extra_data` until their job ends. Several, comma separated: the first encrypts, all decrypt. Without it a job with credentials that had not ended fails with `credentials_lost` after a restart. Required with a `database`.',
    who: 'Users of credentials in `extra_data` that must outlast a restart, and everybody with a `database`.',
    isSecret: true,
  },
} as const satisfies SettingTable
