/** Words of the deployment files that the program is about to learn. Must be empty before a release. */
export const ANNOUNCED: ReadonlySet<string> = new Set(['ATELIER_BUS', 'ATELIER_INTERNAL_PORT', 'ATELIER_ADVERTISE'])
