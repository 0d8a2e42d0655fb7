/** The processes that use a folder. */
export interface FolderUsers {
  /** The name of this process. */
  readonly own: string
  /** The names of those that live, this one included. */
  readonly live: Pick<ReadonlySet<string>, 'has'>
}
