/** What the service keeps about itself. */
import { table, text } from './table.ts'

export const meta = table('meta', ['key'], { key: text(), value: text() })
