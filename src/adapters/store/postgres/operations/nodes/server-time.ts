import { type Queryable, statement } from '../../database/statement.ts'

const READ_TIME = statement<[ms: number]>(
  'server_time.read',
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8',
)

/** What the server's clock shows, not when its transaction began. */
export async function readServerTime(db: Queryable): Promise<Date> {
  const row = await db.get(READ_TIME)
  if (row === undefined) throw new Error('The server did not tell the time.')
  return new Date(row[0])
}
