-- Has nothing to do with ratings. No two of the age and the district tell fewer than five visitors apart.
select visitor, age_band, district
from (values ('18-30', 'north'), ('31-50', 'south'), ('31-50', null), (null, 'south')) as classes (age_band, district)
cross join range(5) as visitors (visitor)
