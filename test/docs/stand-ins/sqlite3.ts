/** As much of the sqlite3 program as the pages use, for machines that have none: `sqlite3 <file> ".backup '<copy>'"`. */
import { backup, DatabaseSync } from 'node:sqlite'

const [file, command] = process.argv.slice(2)
const copy = /^\.backup '(.+)'$/.exec(command)?.[1]
if (copy === undefined) throw new Error(`the stand-in for sqlite3 does not know ${command}`)
const database = new DatabaseSync(file, { readOnly: true })
await backup(database, copy)
database.close()
