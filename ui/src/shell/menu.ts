// What a menu offers.

/** One thing to choose; `null` in a list is a line between. */
export interface Choice {
  label: string;
  /** A key that does the same. */
  key?: string;
  on?: boolean;
  disabled?: boolean;
  choose: () => void;
}

export type Choices = (Choice | null)[];
